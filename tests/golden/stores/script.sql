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
INSERT INTO "asks" VALUES(7,4294967297,'0.0/1',X'1C6E1A0F847A17B6423A68B778F90498',4294967298,'bad_request','{"type":"fault","kind":"bad_request","message":"odd"}',1187537646);
INSERT INTO "asks" VALUES(8,4294967297,'0.1/1',X'CCBB208ACDAAB7E24D6B404F45B95EF0',4294967298,NULL,'{"type":"reply","text":"27 Go on from: ","usage":{"input_tokens":27,"output_tokens":4},"model":"m-1"}',2281794665);
INSERT INTO "asks" VALUES(9,4294967298,'0.0/1',X'A941C01AB04D9579F141F87140A9DA42',4294967298,NULL,'{"type":"reply","text":"27 Go on from: ","usage":{"input_tokens":27,"output_tokens":4},"model":"m-1"}',2505738377);
INSERT INTO "asks" VALUES(10,4294967298,'0.1/1',X'F049D6C895DB9F3F64C02B41E386AB21',4294967298,NULL,'{"type":"reply","text":"27 Go on from: ","usage":{"input_tokens":27,"output_tokens":4},"model":"m-1"}',2277656365);
INSERT INTO "asks" VALUES(11,4294967298,'0.2/1',X'58EA32980DF2BA34327E06989617ECAB',4294967298,'bad_request','{"type":"fault","kind":"bad_request","message":"odd"}',1521797178);
INSERT INTO "asks" VALUES(12,4294967297,'1',X'0DAF24F6F538C99E919FFAD6330DF304',NULL,NULL,'{"type":"returned","value":46}',684051851);
INSERT INTO "asks" VALUES(13,4294967298,'1',X'64B476979F7F0EE3DA187460E356533C',NULL,NULL,'{"type":"returned","value":77}',3880563109);
INSERT INTO "asks" VALUES(14,4294967297,'2',X'EA58F343AC3C1DBCC28560AF151CF3B9',4294967299,NULL,'{"type":"embedding","packed":"AADwPwAAgD8AAHhAAACAPw==","width":2,"usage":{"input_tokens":3}}',1996707703);
INSERT INTO "asks" VALUES(15,4294967298,'2',X'9BB2D48949BDA87865D41B0FB4FDA63B',4294967299,NULL,'{"type":"embedding","packed":"AAB4QAAAgD8AAHhAAACAPwAA8D8AAIA/","width":2,"usage":{"input_tokens":3}}',1676264606);
INSERT INTO "asks" VALUES(16,4294967297,'3',X'3E431F145B800C10E8BEB0EA9790620A',4294967300,NULL,'{"type":"reply","text":"45 Who won, wit","usage":{"input_tokens":45,"output_tokens":4},"model":"m-1"}',3305785558);
INSERT INTO "asks" VALUES(17,4294967298,'3',X'F3E76C95573C7855E0691FC3842B507C',4294967300,NULL,'{"type":"reply","text":"45 Who won, wit","usage":{"input_tokens":45,"output_tokens":4},"model":"m-1"}',785760068);
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
INSERT INTO "outcomes" VALUES(4294967297,NULL,'{"arguments":["42 Argue for: I","46 Argue agains 27 Go on from: "],"length":46,"winner":"45 Who won, wit","closeness":1.875}',1.79487856522116541856e+09,2902280895);
INSERT INTO "outcomes" VALUES(4294967298,NULL,'{"arguments":["27 Argue yes: I 27 Go on from: ","26 Argue no: Is 27 Go on from: ","31 Argue perhap"],"length":77,"winner":"45 Who won, wit","closeness":3.875}',1.79487856522126293184e+09,1103207174);
INSERT INTO "outcomes" VALUES(4294967299,'content_filter','{"type":"fault","kind":"content_filter","message":"not this"}',1.79487856521040225026e+09,945707316);
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
INSERT INTO "runs" VALUES(1,'6mrcs72h5a','golden','partial',11,NULL,NULL,'{"retry":{"attempts":8,"first_wait":0.0,"longest_wait":60.0,"patience":0.0}}','{"tests/golden/debate@1":"443133c0d4f5bdc2"}',NULL,NULL,'{"planned":3,"usable":2,"missing":1,"sent":15,"failed":3,"waves":4,"input_tokens":349,"output_tokens":40,"unknown_cost":12,"seconds":0.023356642996077426,"spent":{"m":{"replies":10,"input_tokens":343,"output_tokens":40,"usd":0.0,"unknown":10,"longest":4},"e":{"replies":2,"input_tokens":6,"usd":0.0,"unknown":2}},"possible":{"asks":1,"tokens":1034,"usd":0.0,"unknown":1}}',NULL,NULL,0,1.79487856518730926514e+09,1.79487856522477769857e+09,2638486052,NULL,'0.0.9');
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
