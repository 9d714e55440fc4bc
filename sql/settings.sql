-- Settings, as far as a session can see and change them.
SELECT name, coalesce(unit, '') AS unit, vartype, boot_val, min_val, max_val, context
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";

-- Settings that a session cannot change.  These errors are raised by the server, and differ
-- between its versions.
\set VERBOSITY sqlstate
SET snowflake.machine_id = 8;
SET snowflake.layout = 'discord';
SET snowflake.max_ahead = 0;
SET snowflake.sequence_range = '0-1';
SET snowflake.sequence_jitter = 10;

-- settings that it can change
SET snowflake.max_wait = '3s';
SHOW snowflake.max_wait;
SET snowflake.max_wait = -1;
SET snowflake.max_wait = -2;
RESET snowflake.max_wait;

-- misspelled names
SET snowflake.machineid = 8;

-- each value is checked before it is written to a file
ALTER SYSTEM SET snowflake.machine_id = -2;
ALTER SYSTEM SET snowflake.max_ahead = '2min';
\set VERBOSITY default
ALTER SYSTEM SET snowflake.layout = 'twiter';
ALTER SYSTEM SET snowflake.layout = 'epoch=2024-01-01 tick=1ms timestamp=41 machine=10 sequence=13';
ALTER SYSTEM SET snowflake.sequence_range = '10';
ALTER SYSTEM SET snowflake.sequence_range = '10-9';

ALTER SYSTEM SET snowflake.sno_sequence_range = '100-102';
ALTER SYSTEM SET snowflake.sno_sequence_range = '0-65536';
ALTER SYSTEM SET snowflake.sno_sequence_range = '7';
ALTER SYSTEM SET snowflake.sno_partition = 65536;

-- a layout that is recorded already
SELECT snowflake_accept_layout();

-- descriptions
SELECT name, short_desc FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;
