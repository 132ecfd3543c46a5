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
INSERT INTO "asks" VALUES(1,4294967297,'0.0/0',X'C1D9155239921BFFE6D97F466B8D4679',4294967297,NULL,'{"type":"reply","text":"42 Argue for: I","usage":{"input_tokens":42,"output_tokens":4},"model":"m-1"}',2179008869);
INSERT INTO "asks" VALUES(2,4294967297,'0.1/0',X'616D174153E811A83253B8228CB869A9',4294967297,NULL,'{"type":"reply","text":"46 Argue agains","usage":{"input_tokens":46,"output_tokens":4},"model":"m-1"}',1062527939);
INSERT INTO "asks" VALUES(3,4294967298,'0.0/0',X'CF16578D4AECAD877C7429FBB7CF67DA',4294967297,NULL,'{"type":"reply","text":"27 Argue yes: I","usage":{"input_tokens":27,"output_tokens":4},"model":"m-1"}',2206246235);
INSERT INTO "asks" VALUES(4,4294967298,'0.1/0',X'4978B0354DBF645DB8CF2BAB42F2E87A',4294967297,NULL,'{"type":"reply","text":"26 Argue no: Is","usage":{"input_tokens":26,"output_tokens":4},"model":"m-1"}',361906321);
INSERT INTO "asks" VALUES(5,4294967298,'0.2/0',X'3A7C0755FADE073115F841672BB8F84F',4294967297,NULL,'{"type":"reply","text":"31 Argue perhap","usage":{"input_tokens":31,"output_tokens":4},"model":"m-1"}',928329235);
INSERT INTO "asks" VALUES(6,4294967299,'0',X'800C2679FB2D4B0EA45B317FC5615156',4294967297,'content_filter','{"type":"fault","kind":"content_filter","message":"not this"}',1902497932);
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
INSERT INTO "runs" VALUES(1,'2nyq99hc6r','golden','running',11,'tests/golden/debates','{"debates":[{"question":"Is tea better than coffee?","sides":["for","against"]},{"question":"Is it late?","sides":["yes","no","perhaps"]},{"question":"refused","sides":["for","against"]}]}','{"retry":{"attempts":8,"first_wait":0.0,"longest_wait":60.0,"patience":0.0}}','{"tests/golden/debates":"c2d68530bf3d4129","tests/golden/debate@1":"443133c0d4f5bdc2"}',NULL,NULL,'{"planned":3,"sent":6,"failed":1,"waves":1,"input_tokens":172,"output_tokens":20,"unknown_cost":5,"seconds":0.00876175399753265,"spent":{"m":{"replies":5,"input_tokens":172,"output_tokens":20,"usd":0.0,"unknown":5,"longest":4}},"possible":{"asks":1,"tokens":1034,"usd":0.0,"unknown":1},"at_risk":{"scripted ":386}}',NULL,NULL,0,1.79487856531156945221e+09,1.79487856533267116547e+09,3424473062,'tests.golden.program:debates','0.0.9');
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
CREATE INDEX asks_by_trial ON asks (trial);
CREATE INDEX open_waves ON waves (id) WHERE ended_at IS NULL;
CREATE INDEX documents_in_order ON documents (kind, number);
COMMIT;
