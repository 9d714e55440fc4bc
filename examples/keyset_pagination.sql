-- Keyset pagination that is stable: the first page takes the horizon, and all pages show rows below
-- it.  No further row can be added there, so the list stays the same while a user turns its pages,
-- except for rows that are deleted.  Nothing is kept on the server meanwhile, neither a
-- transaction nor a cursor.
--
-- The second session is one of dblink, which connects with the connection string in the variable
-- first.

CREATE EXTENSION dblink;
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_id(), title text NOT NULL);
INSERT INTO posts (title) SELECT 'post ' || n FROM generate_series(1, 4) AS n;

-- Another session has inserted a row, and has not committed.  Later rows have been committed.  (The
-- IDs of two sessions are in the order of time, except for some milliseconds.)
SELECT dblink_connect('slow', :'first');
SELECT dblink_exec('slow', 'BEGIN');
SELECT dblink_exec('slow', $$INSERT INTO posts (title) VALUES ('slow post')$$);
SELECT pg_sleep_until(clock_timestamp() + interval '20 ms');
INSERT INTO posts (title) SELECT 'later post ' || n FROM generate_series(1, 2) AS n;

-- The first page, newest first.  The client keeps the horizon, and the last ID of the page.
SELECT snowflake_horizon() AS horizon \gset
CREATE TABLE pages AS
SELECT 1 AS page, *
FROM (SELECT id, title FROM posts WHERE id < :horizon ORDER BY id DESC LIMIT 2) AS rows;
SELECT min(id) AS last_id FROM pages \gset

-- Between two pages the row is committed, and more are added.
SELECT dblink_exec('slow', 'COMMIT');
INSERT INTO posts (title) VALUES ('newest post');

-- The next page is below the last ID, and so below the horizon.
INSERT INTO pages SELECT 2, id, title FROM posts WHERE id < :last_id ORDER BY id DESC LIMIT 2;
SELECT page, title FROM pages ORDER BY id DESC;

-- The number of rows in the list is unchanged.
SELECT 1 / (count(*) = 4)::integer AS is_stable FROM posts WHERE id < :horizon;

-- The new rows since the first page: those from its horizon on.  The row that was committed late
-- is one of them.
\set first_horizon :horizon
SELECT snowflake_horizon() AS horizon \gset
CREATE TABLE news AS SELECT id, title FROM posts WHERE id >= :first_horizon AND id < :horizon;
SELECT title FROM news ORDER BY id;

DO $$
BEGIN
    ASSERT (SELECT array_agg(title ORDER BY id DESC) FROM pages) = '{post 4,post 3,post 2,post 1}',
        'the pages have the rows below the horizon';
    ASSERT (SELECT array_agg(title ORDER BY title) FROM news)
        = '{later post 1,later post 2,newest post,slow post}', 'all later rows are new';
END
$$;
SELECT dblink_disconnect('slow');
