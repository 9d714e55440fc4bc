-- Poll a table with a key of a sequence, such as bigserial, without missing rows, in plain SQL.
--
-- Before its first number, a transaction takes a shared advisory lock, whose key is a lower bound
-- of its numbers.  The reader first reads the next number of the sequence, and then looks at the
-- locks.  A transaction whose lock it does not find gets a number at or above the number that was
-- read, or has ended, and its rows are visible to statements that begin later.
--
-- The key has two parts: the OID of the sequence, and the number modulo 2^32.  A transaction must
-- end before 2^31 further numbers are used.  The sequence must have CACHE 1, and all keys must
-- come from held_nextval(), in the transaction that inserts the row.

CREATE FUNCTION held_nextval(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	setting CONSTANT text := 'held.s' || sequence::oid;
	class CONSTANT bigint := sequence::oid;
	key bigint;
BEGIN
	IF current_setting(setting, true) IS DISTINCT FROM 'on' THEN
		IF (SELECT seqcache > 1 FROM pg_sequence WHERE seqrelid = sequence) THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('sequence %s has a cache', sequence);
		END IF;
		key := coalesce(pg_sequence_last_value(sequence), 0) & 4294967295;
		PERFORM pg_advisory_xact_lock_shared((class - (class >> 31 << 32))::integer,
			(key - (key >> 31 << 32))::integer);
		PERFORM set_config(setting, 'on', true);
	END IF;
	RETURN nextval(sequence);
END $$;

CREATE PROCEDURE sequence_horizon(sequence regclass, INOUT horizon bigint DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('transaction_isolation') !~ '^read' THEN
		RAISE invalid_transaction_state USING
			MESSAGE = 'sequence_horizon() must be called in a READ COMMITTED transaction';
	END IF;
	horizon := coalesce(pg_sequence_last_value(sequence), 0) + 1;
	SELECT least(horizon, min(horizon - age)) INTO horizon
	FROM pg_locks, LATERAL (SELECT horizon - objid::bigint & 4294967295 AS age) AS lock
	WHERE locktype = 'advisory' AND classid = sequence AND objsubid = 2 AND age < 2147483648
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;

-- The test: another session inserts first and commits last.  It is one of dblink, which connects
-- with the connection string in the variable first.
CREATE TABLE jobs (id bigserial PRIMARY KEY, job text);
ALTER TABLE jobs ALTER id SET DEFAULT held_nextval('jobs_id_seq');

CREATE EXTENSION dblink;
SELECT dblink_connect('slow', :'first') \g /dev/null
SELECT dblink_exec('slow', 'BEGIN'), dblink_exec('slow', $$INSERT INTO jobs (job) VALUES ('slow')$$)
\g /dev/null
INSERT INTO jobs (job) VALUES ('fast');

CALL sequence_horizon('jobs_id_seq') \gset
SELECT count(*) AS before_the_commit FROM jobs WHERE id < :horizon;
SELECT dblink_exec('slow', 'COMMIT') \g /dev/null
SELECT :horizon AS next_id \gset
CALL sequence_horizon('jobs_id_seq') \gset
SELECT job FROM jobs WHERE id >= :next_id AND id < :horizon ORDER BY id;
DO $$ BEGIN ASSERT (SELECT count(*) FROM jobs) = 2; END $$;
