# Instructions under a clock that stands still; sourced, by bash, after lib.sh.  Otherwise their number would depend on
# how many ticks, and so how many batches, pass while valgrind counts.

# Instructions as "instructions" counts them.  The clock stands a minute after where it stood before, because IDs
# continue after the reservation of the last run.  $work/clock.so has to be t/lib/clock.c.
frozen_instructions() { # OPTIONS OF THE BACKEND
	local environment=(LD_PRELOAD="$work/clock.so" SNOWFLAKE_TEST_CLOCK="$work/clock")

	echo . >> "$work/frozen"
	perl -e 'print pack("qq", 0, $ARGV[0] * 1e9)' -- "$(($(date +%s) + 60 * $(wc -l < "$work/frozen")))" > "$work/clock"
	chmod 644 "$work/clock"
	instructions "$@"
}
