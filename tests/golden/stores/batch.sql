BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE asks (
	id INTEGER NOT NULL, 
	trial BIGINT NOT NULL, 
	path TEXT NOT NULL, 
	fingerprint BLOB NOT NULL, 
	wave BIGINT, 
	fault TEXT, 
	settlement TEXT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (id)
);
CREATE TABLE cache (
	"key" BLOB NOT NULL, 
	settlement TEXT NOT NULL, 
	created_at FLOAT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY ("key")
)
 WITHOUT ROWID

;
CREATE TABLE documents (
	kind TEXT NOT NULL, 
	id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	created_at FLOAT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (kind, id)
);
CREATE TABLE outcomes (
	trial INTEGER NOT NULL, 
	fault TEXT, 
	body TEXT NOT NULL, 
	ended_at FLOAT, 
	checksum BIGINT, 
	PRIMARY KEY (trial)
);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	uid TEXT NOT NULL, 
	name TEXT, 
	status TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	driver TEXT, 
	settings TEXT, 
	options TEXT NOT NULL, 
	sources TEXT NOT NULL, 
	parent TEXT, 
	cut TEXT, 
	counters TEXT NOT NULL, 
	analysis TEXT, 
	error TEXT, 
	cancel BOOLEAN NOT NULL, 
	created_at FLOAT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	checksum BIGINT, 
	location TEXT, 
	release TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (uid), 
	UNIQUE (name)
);
INSERT INTO "runs" VALUES(1,'44q29tzn4g','golden','running',11,'tests/golden/debates','{"debates":[{"question":"Is tea better than coffee?","sides":["for","against"]},{"question":"Is it late?","sides":["yes","no","perhaps"]},{"question":"refused","sides":["for","against"]}]}','{"via":"batch"}','{"tests/golden/debates":"c2d68530bf3d4129","tests/golden/debate@1":"443133c0d4f5bdc2"}',NULL,NULL,'{"planned":3,"sent":6,"waves":1,"seconds":0.0}',NULL,NULL,0,1.79487856545892429356e+09,1.79487856547969245905e+09,1094899151,'tests.golden.program:debates','0.0.9');
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	program TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	abandoned BOOLEAN DEFAULT 0 NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "trials" VALUES(4294967297,'9708d41538aeb5287114','tests/golden/debate@1','{"question":"Is tea better than coffee?","sides":["for","against"]}',0,0,4218392010);
INSERT INTO "trials" VALUES(4294967298,'c5688722bec2b0200723','tests/golden/debate@1','{"question":"Is it late?","sides":["yes","no","perhaps"]}',0,0,1364777617);
INSERT INTO "trials" VALUES(4294967299,'15018951531cb6fb22f5','tests/golden/debate@1','{"question":"refused","sides":["for","against"]}',0,0,4048387832);
CREATE TABLE waves (
	id INTEGER NOT NULL, 
	account TEXT NOT NULL, 
	transport TEXT NOT NULL, 
	size INTEGER NOT NULL, 
	asks TEXT NOT NULL, 
	sent_at FLOAT NOT NULL, 
	receipt TEXT, 
	ended_at FLOAT, 
	about TEXT, 
	checksum BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "waves" VALUES(4294967297,'books','batch',6,'[[4294967297,"0.0/0","c1d9155239921bffe6d97f466b8d4679"],[4294967297,"0.1/0","616d174153e811a83253b8228cb869a9"],[4294967298,"0.0/0","cf16578d4aecad877c7429fbb7cf67da"],[4294967298,"0.1/0","4978b0354dbf645db8cf2bab42f2e87a"],[4294967298,"0.2/0","3a7c0755fade073115f841672bb8f84f"],[4294967299,"0","800c2679fb2d4b0ea45b317fc5615156"]]',1800000000.0,'{"batch":"batch-0"}',NULL,'{"owner":"me","model":"m"}',3852340091);
CREATE INDEX asks_by_trial ON asks (trial);
CREATE INDEX open_waves ON waves (id) WHERE ended_at IS NULL;
CREATE INDEX documents_in_order ON documents (kind, number);
COMMIT;
