# snowflake: Snowflake IDs for PostgreSQL
#
#   make, make install      build and install with the pg_config on the PATH
#                           (another one: make PG_CONFIG=/path/to/pg_config)
#   make installcheck       tests against the running server of PGHOST and so on,
#                           which has to preload snowflake and have a machine ID
#   make unit               tests of src/core alone; needs no PostgreSQL server
#   make dist               the archive of a release, of what is committed

EXTENSION = snowflake snowflake_registry
DATA = $(wildcard snowflake--*.sql snowflake_registry--*.sql)

# The version is in META.json: of the release, and of each extension in it, of which PostgreSQL sees
# the first two numbers, since a third one changes no SQL.
DISTVERSION := $(shell sed -n 's/^    "version": "\(.*\)",/\1/p' META.json)
CONTROLS = $(addsuffix .control, $(EXTENSION))

CORE_OBJS = src/core/base32.o src/core/instant.o src/core/layout.o src/core/layout_parse.o \
	src/core/lease.o src/core/sequence_range.o src/core/sno.o
MODULE_big = snowflake
OBJS = $(CORE_OBJS) src/admin.o src/base32.o src/ceiling.o src/change_over.o src/clock.o \
	src/comparison.o src/decode.o src/discard.o src/encode.o src/generator.o src/kept.o src/layout_argument.o \
	src/layouts.o src/line.o src/line_move.o src/line_span.o src/line_state.o src/log_limit.o \
	src/machine.o src/make_register.o src/nextval.o src/overflow.o src/pushdown.o src/register.o src/registrar.o \
	src/registry_client.o src/settings.o src/shared.o src/sno_argument.o src/sno_estimate.o src/sno_fields.o src/sno_io.o src/sno_nextval.o \
	src/sno_order.o src/snowflake.o src/span.o src/stats.o src/time_index.o src/wait.o src/wait_event.o
PG_CPPFLAGS = -I$(srcdir)/src -I$(libpq_srcdir) -DSF_VERSION='"$(DISTVERSION)"'
SHLIB_LINK = $(libpq)

REGRESS = setup layouts decode encode base32 boundary pushdown pushdown_results generator stats settings permissions partitions adopt registry sno sno_estimates sno_generator sno_pushdown errors
ISOLATION = sessions create_partitions adopt_waits
ISOLATION_OPTS = --load-extension=snowflake
TAP_TESTS = 1

UNIT_TESTS = $(patsubst %.c,%,$(wildcard test/unit/test_*.c))
EXTRA_CLEAN = $(CONTROLS) $(UNIT_TESTS) $(FUZZ_TESTS) $(patsubst %.o,%.d,$(OBJS)) output_iso tmp_check tmp_check_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

all: $(CONTROLS)

%.control: %.control.in META.json
	version=$$(sed -n '/"$*": {/,/}/s/.*"version": "\([0-9]*\.[0-9]*\)\..*/\1/p' META.json) && \
	test -n "$$version" && sed "s/@VERSION@/$$version/" $< > $@

# The core knows no PostgreSQL: it is compiled as C99 and without the include
# paths, so that an #include of a server header does not even build.
$(CORE_OBJS): override CPPFLAGS =
$(CORE_OBJS): override CFLAGS += -std=c99 -pedantic

# Any header may matter to any object: there are few, and building is quick.
$(OBJS): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/core/*.h) META.json

UNIT_CFLAGS = -std=c99 -pedantic -g -O1 -Wall -Wextra -Werror -I$(srcdir)/src/core

test/unit/test_%: test/unit/test_%.c test/unit/tap.h test/unit/csv.h $(CORE_OBJS:.o=.c) $(wildcard $(srcdir)/src/core/*.h)
	$(CC) $(UNIT_CFLAGS) -o $@ $< $(CORE_OBJS:.o=.c)

# Fuzz targets, without a fuzzer; with one, by script/test-deep.
FUZZ_TESTS = $(patsubst test/fuzz/%.c,test/unit/test_%,$(wildcard test/fuzz/fuzz_*.c))

test/unit/test_fuzz_%: test/fuzz/fuzz_%.c test/fuzz/standalone.c test/fuzz/fuzz.h test/unit/tap.h $(CORE_OBJS:.o=.c) $(wildcard $(srcdir)/src/core/*.h)
	$(CC) $(UNIT_CFLAGS) -DCORPUS='"test/fuzz/corpus/$*"' -o $@ $< test/fuzz/standalone.c $(CORE_OBJS:.o=.c)

# What runs them, where they are built for another machine.
UNIT_EXEC =

.PHONY: unit
unit: $(UNIT_TESTS) $(FUZZ_TESTS)
	$(PROVE) --exec '$(UNIT_EXEC)' $(UNIT_TESTS) $(FUZZ_TESTS)

.PHONY: dist
dist:
	git archive --format=zip --prefix=snowflake-$(DISTVERSION)/ -o snowflake-$(DISTVERSION).zip HEAD
