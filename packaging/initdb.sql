-- Run by the image's entry point in POSTGRES_DB, when the cluster is made.
CREATE EXTENSION IF NOT EXISTS snowflake;
