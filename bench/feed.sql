-- The objects of bench/feed: a table with five keys for the same rows, the procedures of its
-- writers, and its pollers.  Each poller keeps its position and the rows that it has read in the
-- database, in the transaction that reads.

CREATE EXTENSION snowflake;

-- As PostgreSQL has it from 18 on, except for the order within a millisecond.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE SQL VOLATILE AS $$
	SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
		PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid $$;

-- The last four columns show the origin of a row that was missed.  Pollers also read by xid.
CREATE TABLE events (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	seq bigserial UNIQUE,
	uuid uuid UNIQUE DEFAULT uuid_v7(),
	sno sno UNIQUE DEFAULT sno_nextval(),
	writer text NOT NULL,
	pid integer DEFAULT pg_backend_pid(),
	xid xid8 DEFAULT pg_current_xact_id(),
	written timestamptz DEFAULT clock_timestamp());
CREATE INDEX ON events (xid, id);

CREATE PROCEDURE write_in_steps(steps integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR step IN 1 .. steps LOOP
		INSERT INTO events (writer) SELECT 'steps' FROM generate_series(1, step % 3 + 1);
		CASE step % 4 WHEN 3 THEN ROLLBACK; ELSE COMMIT; END CASE;
	END LOOP;
END $$;

CREATE PROCEDURE write_with_error() LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO events (writer) VALUES ('trapped error');
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		INSERT INTO events (writer) VALUES ('after an error');
	END;
END $$;

-- Writes the remaining rows, so that there are "goal" rows at the end.
CREATE PROCEDURE fill(goal bigint, begun timestamptz, seconds integer) LANGUAGE plpgsql AS $$
DECLARE
	finish CONSTANT timestamptz := clock_timestamp() + interval '3 s';
	due bigint;
BEGIN
	WHILE clock_timestamp() < finish LOOP
		due := goal * least(extract(epoch FROM clock_timestamp() - begun) / seconds, 1) - (SELECT last_value FROM events_seq_seq);
		IF due > 0 THEN
			INSERT INTO events (writer) SELECT 'fill' FROM generate_series(1, least(due, (random() * 20000)::bigint));
		ELSE
			PERFORM pg_sleep(0.1);
		END IF;
		COMMIT;
	END LOOP;
END $$;

CREATE TABLE poller (name text PRIMARY KEY, reached text NOT NULL);
INSERT INTO poller VALUES ('seq', '0'), ('uuid', '00000000-0000-0000-0000-000000000000'), ('id', '0'), ('xid', '0'), ('horizon', '0');

CREATE TABLE poll (
	poller text,
	at timestamptz DEFAULT clock_timestamp(),
	read_from text,
	read_to text,
	rows bigint[]);

-- The keys above the last one that was read.
CREATE PROCEDURE poll_by_key(key text) LANGUAGE plpgsql AS $$
DECLARE
	last_read text := (SELECT p.reached FROM poller p WHERE name = key);
	last text;
	rows bigint[];
BEGIN
	EXECUTE format('SELECT (array_agg(key))[count(*)::integer]::text, array_agg(seq)
		FROM (SELECT %1$I AS key, seq FROM events WHERE %1$I > %2$L ORDER BY %1$I) AS new', key, last_read) INTO last, rows;
	IF rows IS NOT NULL THEN
		INSERT INTO poll VALUES (key, DEFAULT, last_read, last, rows);
		UPDATE poller p SET reached = last WHERE name = key;
	END IF;
END $$;

-- The rows of transactions before the oldest one that is running.
CREATE PROCEDURE poll_by_xid() LANGUAGE plpgsql AS $$
DECLARE
	oldest CONSTANT xid8 := pg_snapshot_xmin(pg_current_snapshot());
	last_read CONSTANT xid8 := (SELECT p.reached FROM poller p WHERE name = 'xid')::xid8;
BEGIN
	IF oldest <> last_read THEN
		INSERT INTO poll VALUES ('xid', DEFAULT, last_read, oldest,
			(SELECT array_agg(seq ORDER BY xid, id) FROM events WHERE xid >= last_read AND xid < oldest));
		UPDATE poller p SET reached = oldest WHERE name = 'xid';
	END IF;
END $$;

-- The keys below the horizon.  The horizons that the client receives are compared over crashes and
-- promotions.
CREATE PROCEDURE poll_by_horizon() LANGUAGE plpgsql AS $$
DECLARE
	horizon bigint;
	last_read bigint;
	rows bigint[];
BEGIN
	horizon := snowflake_horizon();
	last_read := (SELECT p.reached FROM poller p WHERE name = 'horizon');
	rows := (SELECT array_agg(seq ORDER BY id) FROM events WHERE id >= last_read AND id < horizon);
	RAISE NOTICE 'horizon % position % rows % machine ID %', horizon, last_read, coalesce(cardinality(rows), 0),
		current_setting('snowflake.machine_id');
	IF horizon <> last_read THEN
		INSERT INTO poll VALUES ('horizon', DEFAULT, last_read, horizon, rows);
		UPDATE poller p SET reached = greatest(last_read, horizon) WHERE name = 'horizon';
	END IF;
END $$;

-- Poll every 10 ms for some seconds, at least once.  A poller has to use an index scan; the planner has no statistics
-- of rows that were written just now.
CREATE PROCEDURE poll(name text, seconds real) LANGUAGE plpgsql AS $$
DECLARE
	finish CONSTANT timestamptz := clock_timestamp() + make_interval(secs => seconds);
BEGIN
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	SET max_parallel_workers_per_gather = 0;
	LOOP
		IF name = 'horizon' THEN
			CALL poll_by_horizon();
		ELSIF name = 'xid' THEN
			CALL poll_by_xid();
		ELSE
			CALL poll_by_key(name);
		END IF;
		COMMIT;
		EXIT WHEN clock_timestamp() >= finish;
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;

-- The committed rows that a poller has missed or read twice.
CREATE FUNCTION compare(name text, OUT missed bigint, OUT twice bigint, OUT unknown bigint) LANGUAGE SQL
SET work_mem = '1GB' AS $$
	WITH seen AS MATERIALIZED (
		SELECT seq, count(*) AS times FROM poll, unnest(rows) AS seq WHERE poller = name GROUP BY seq)
	SELECT count(*) FILTER (WHERE times IS NULL), count(*) FILTER (WHERE times > 1), count(*) FILTER (WHERE e.seq IS NULL)
	FROM events e FULL JOIN seen USING (seq)
$$;
