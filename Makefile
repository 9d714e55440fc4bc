# snowflake: Snowflake IDs for PostgreSQL
#
#   make, make install      build and install with the pg_config on the PATH
#                           (another one: make PG_CONFIG=/path/to/pg_config)
#   make installcheck       tests against the running server of PGHOST and so on,
#                           which has to preload snowflake and have a machine ID
#   make unit               tests of src/core alone; needs no PostgreSQL server
#   make dist the archive of a release, of the committed files
#
# A build outside of the source tree, from an empty directory: make -f /path/to/Makefile, with the
# same option for each target.

# The directory of the sources, found as PGXS does.
srcdir := $(or $(VPATH),$(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST)))))

EXTENSION = snowflake snowflake_registry
DATA = $(notdir $(wildcard $(srcdir)/snowflake--*.sql $(srcdir)/snowflake_registry--*.sql))

# The release, as META.json has it.  PostgreSQL sees the first two numbers (the control files),
# since a third one changes no SQL; test/release checks that they agree.
DISTVERSION := $(shell sed -n 's/^    "version": "\(.*\)",/\1/p' $(srcdir)/META.json)

CORE_OBJS = src/core/base32.o src/core/batch.o src/core/instant.o src/core/layout.o src/core/layout_parse.o \
	src/core/sequence_range.o src/core/sno.o
MODULE_big = snowflake
OBJS = $(CORE_OBJS) src/functions/admin.o src/functions/base32.o src/functions/create_origin.o \
	src/functions/decode.o src/functions/discard.o src/functions/encode.o src/functions/feed_guard.o src/functions/horizon.o \
	src/functions/layout_argument.o src/functions/layouts.o src/functions/nextval.o src/functions/server_machine_id.o \
	src/functions/sno_argument.o src/functions/sno_estimate.o src/functions/sno_fields.o \
	src/functions/sno_io.o src/functions/sno_nextval.o src/functions/sno_order.o \
	src/functions/stats.o src/generator/clock.o src/generator/generator.o src/generator/machine_id.o \
	src/generator/overflow.o src/generator/session_end.o src/generator/wait.o src/guc.o src/log_limit.o src/pushdown/append.o \
	src/pushdown/call.o src/pushdown/early.o src/pushdown/exempt.o src/pushdown/match.o \
	src/pushdown/pushdown.o src/pushdown/replace.o src/pushdown/sort.o src/pushdown/support.o \
	src/registry/answer.o src/registry/client.o src/registry/connect.o src/registry/worker.o src/settings.o src/snowflake.o src/state/change.o \
	src/state/durable_state.o src/state/generator_state.o src/state/horizon.o src/state/lease.o src/state/lock.o \
	src/state/origin.o src/state/postmaster_memory.o src/state/prepared.o src/state/registry_identity.o src/state/reservation.o \
	src/state/returned.o src/state/settings_worker.o src/state/shared.o src/wait_event.o

# In addition to those on the command line of make.
override PG_CPPFLAGS += -I$(srcdir)/src -I$(libpq_srcdir) -DSF_VERSION='"$(DISTVERSION)"'
override SHLIB_LINK += $(libpq)

REGRESS = setup layouts decode encode base32 boundary pushdown pushdown_views pushdown_results generator stats settings permissions partitions retention adopt feed registry sno sno_estimates sno_generator sno_pushdown errors
ISOLATION = sessions create_partitions drop_partitions adopt_waits horizon
ISOLATION_OPTS = --load-extension=snowflake
TAP_TESTS = 1

UNIT_TESTS = $(patsubst $(srcdir)/%.c,%,$(wildcard $(srcdir)/test/unit/test_*.c))
EXTRA_CLEAN = test/unit/core.o $(UNIT_TESTS) $(FUZZ_TESTS) $(patsubst %.o,%.d,$(OBJS)) output_iso tmp_check tmp_check_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The directories of the build's files, if they are not those of the sources.
ifneq ($(realpath $(srcdir)),$(CURDIR))
$(shell mkdir -p $(sort $(dir $(OBJS))) test/unit)
endif

# The core does not depend on PostgreSQL: it is compiled as C99 and without the include
# paths, so that an #include of a server header does not build.
$(CORE_OBJS): override CPPFLAGS =
$(CORE_OBJS): override CFLAGS += -std=c99 -pedantic

# The compiler records which headers an object includes.
$(OBJS): override CFLAGS += -MMD -MP
$(OBJS): META.json
-include $(OBJS:.o=.d)

UNIT_CFLAGS = -std=c99 -pedantic -g -O1 -Wall -Wextra -Werror -I$(srcdir)/src/core

CORE_SOURCES = $(patsubst %.o,$(srcdir)/%.c,$(CORE_OBJS))

# The core, compiled once for all of them.
test/unit/core.o: $(CORE_SOURCES) $(wildcard $(srcdir)/src/core/*.h)
	$(CC) $(UNIT_CFLAGS) -nostdlib -r -o $@ $(CORE_SOURCES)

test/unit/test_%: test/unit/test_%.c test/unit/tap.h test/unit/csv.h test/unit/core.o
	$(CC) $(UNIT_CFLAGS) -o $@ $< test/unit/core.o

# Fuzz targets, without a fuzzer; with one, by script/test-deep.
FUZZ_TESTS = $(patsubst $(srcdir)/test/fuzz/%.c,test/unit/test_%,$(wildcard $(srcdir)/test/fuzz/fuzz_*.c))

test/unit/test_fuzz_%: test/fuzz/fuzz_%.c $(srcdir)/test/fuzz/standalone.c test/fuzz/fuzz.h test/unit/tap.h test/unit/core.o
	$(CC) $(UNIT_CFLAGS) -DCORPUS='"test/fuzz/corpus/$*"' -o $@ $< $(srcdir)/test/fuzz/standalone.c test/unit/core.o

# The command that runs them, if they are built for another machine.
UNIT_EXEC =

# PGXS names no PROVE if PostgreSQL was configured without its TAP tests.
.PHONY: unit
unit: $(UNIT_TESTS) $(FUZZ_TESTS)
	cd $(srcdir) && $(or $(PROVE),prove) --exec '$(UNIT_EXEC)' $(addprefix $(CURDIR)/,$(UNIT_TESTS) $(FUZZ_TESTS))

.PHONY: dist
dist:
	git -C $(srcdir) archive --format=zip --prefix=snowflake-$(DISTVERSION)/ -o $(CURDIR)/snowflake-$(DISTVERSION).zip HEAD
