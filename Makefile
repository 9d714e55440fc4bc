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

EXTENSION = snowflake snowflake_registry snowflake_sql
DATA = $(notdir $(wildcard $(srcdir)/snowflake--*.sql $(srcdir)/snowflake_registry--*.sql))
# The edition in SQL as an extension.
DATA_built = snowflake_sql--$(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/snowflake_sql.control).sql

# The release, as META.json has it.  PostgreSQL sees the first two numbers (the control files),
# since a third one changes no SQL; test/release checks that they agree.
DISTVERSION := $(shell sed -n 's/^    "version": "\(.*\)",/\1/p' $(srcdir)/META.json)

# All sources are compiled.
objects_in = $(sort $(patsubst $(srcdir)/%.c,%.o,$(foreach directory,$(1),$(wildcard $(srcdir)/$(directory)/*.c))))
CORE_OBJS = $(call objects_in,src/core)
MODULE_big = snowflake
OBJS = $(call objects_in,src src/*)

# In addition to those on the command line of make.
override PG_CPPFLAGS += -I$(srcdir)/src -I$(libpq_srcdir) -DSF_VERSION='"$(DISTVERSION)"'
override SHLIB_LINK += $(libpq)

REGRESS = setup layouts decode encode base32 base32_pushdown boundary pushdown pushdown_views pushdown_results pushdown_plans pushdown_order pushdown_buckets generator stats settings permissions partitions retention adopt feed wait process registry sno sno_estimates sno_generator sno_pushdown errors
ISOLATION = sessions create_partitions drop_partitions adopt_waits horizon process_waits
ISOLATION_OPTS = --load-extension=snowflake
TAP_TESTS = 1

UNIT_TESTS = $(patsubst $(srcdir)/%.c,%,$(wildcard $(srcdir)/test/unit/test_*.c))
EXTRA_CLEAN = test/unit/core.o $(UNIT_TESTS) $(FUZZ_TESTS) $(patsubst %.o,%.d,$(OBJS)) output_iso tmp_check tmp_check_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The directories of the build's files, if they differ from the directories of the sources.
ifneq ($(realpath $(srcdir)),$(CURDIR))
$(shell mkdir -p $(sort $(dir $(OBJS))) test/unit)
endif

$(DATA_built): portable/snowflake.sql
	cp $< $@

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

# Fuzz targets, without a fuzzer; with one, by script/prove.
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
