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
INSERT INTO "asks" VALUES(1,4294967297,'0',X'E6EB66F666C4277B591F443A4B58BB0A',4294967297,NULL,'{"type":"reply","text":"32 Round 0: gue","usage":{"input_tokens":32,"output_tokens":4},"model":"m-1"}',1096162870);
INSERT INTO "asks" VALUES(2,4294967298,'0',X'2A25F8BE1748B5C631A353754ED7C93D',4294967298,NULL,'{"type":"reply","text":"33 Round 1: gue","usage":{"input_tokens":33,"output_tokens":4},"model":"m-1"}',503530201);
INSERT INTO "asks" VALUES(3,4294967299,'0',X'B4697172DF7EFB85E849DAE8C10A4DC4',4294967299,NULL,'{"type":"reply","text":"33 Round 2: gue","usage":{"input_tokens":33,"output_tokens":4},"model":"m-1"}',576877266);
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
INSERT INTO "documents" VALUES('kept','z55ytyp8bs/checkpoint',1,'{"rounds":3,"total":45}',1.79487856540287256238e+09,1.79487856542063331606e+09,202090087);
CREATE TABLE outcomes (
	trial INTEGER NOT NULL, 
	fault TEXT, 
	body TEXT NOT NULL, 
	ended_at FLOAT, 
	checksum BIGINT, 
	PRIMARY KEY (trial)
);
INSERT INTO "outcomes" VALUES(4294967297,NULL,'15',1.79487856539447021486e+09,708342941);
INSERT INTO "outcomes" VALUES(4294967298,NULL,'15',1.79487856540860748295e+09,2057646091);
INSERT INTO "outcomes" VALUES(4294967299,NULL,'15',1.79487856541727089886e+09,1789159953);
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
INSERT INTO "runs" VALUES(1,'z55ytyp8bs','golden','running',11,'tests/golden/learn','{"rounds":5}','{"retry":{"attempts":8,"first_wait":0.0,"longest_wait":60.0,"patience":0.0}}','{"tests/golden/learn":"e6263c4f3e0f833d","tests/golden/guess@1":"e1df36a2f9f7e2d0"}',NULL,NULL,'{"planned":4,"usable":3,"sent":3,"waves":3,"input_tokens":98,"output_tokens":12,"unknown_cost":3,"seconds":0.03843870900163893,"spent":{"m":{"replies":3,"input_tokens":98,"output_tokens":12,"usd":0.0,"unknown":3,"longest":4}},"possible":{"usd":0.0},"at_risk":{"scripted ":386}}',NULL,NULL,0,1.79487856537085604664e+09,1.79487856542159247398e+09,1417476737,'tests.golden.program:learn','0.0.9');
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
INSERT INTO "trials" VALUES(4294967297,'round 0','tests/golden/guess@1','{"rounds":0,"total":0}',0,0,2735648518);
INSERT INTO "trials" VALUES(4294967298,'round 1','tests/golden/guess@1','{"rounds":1,"total":15}',0,0,2266936584);
INSERT INTO "trials" VALUES(4294967299,'round 2','tests/golden/guess@1','{"rounds":2,"total":30}',0,0,3319332078);
INSERT INTO "trials" VALUES(4294967300,'round 3','tests/golden/guess@1','{"rounds":3,"total":45}',0,0,3889006136);
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
