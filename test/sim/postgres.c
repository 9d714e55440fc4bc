/*
 * postgres.c
 *	  Errors, memory, and small functions of PostgreSQL.
 */
#include "world.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "port/pg_crc32c.h"
#include "replication/slot.h"
#include "utils/acl.h"
#include "utils/guc_tables.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/lsyscache.h"

#include "issue/lease_error.h"
#include "functions/arguments.h"
#include "functions/functions.h"

/* Variables of each process. */
PGPROC	   *MyProc OF_PROCESS = NULL;
Latch	   *MyLatch OF_PROCESS = NULL;
int			MyProcPid OF_PROCESS = 0;
#if PG_VERSION_NUM >= 170000
ProcNumber	MyProcNumber OF_PROCESS = 0;
#endif
Oid			MyDatabaseId OF_PROCESS = 0;
int			ParallelWorkerNumber OF_PROCESS = -1;
sigjmp_buf *PG_exception_stack OF_PROCESS = NULL;
ErrorContextCallback *error_context_stack OF_PROCESS = NULL;
pg_prng_state pg_global_prng_state OF_PROCESS = {0};
static OF_PROCESS int error_level = 0;

/* The same in all.  ProcessInterrupts is called at each CHECK_FOR_INTERRUPTS. */
volatile	sig_atomic_t InterruptPending = true;
int			XactIsoLevel = XACT_READ_COMMITTED;
static PROC_HDR header =
{
	.allProcs = procs
};
PROC_HDR   *ProcGlobal = &header;
int			MaxBackends = SESSIONS;
bool		IsUnderPostmaster = true;
char	   *DataDir = "/data";
char	   *ConfigFileName = "/etc/postgresql.conf";
char	   *shared_preload_libraries_string = "";
static uint32 wait_info;
uint32	   *my_wait_event_info = &wait_info;
#if PG_VERSION_NUM >= 180000
int			max_active_replication_origins = 10;
#else
int			max_replication_slots = 10;
#endif

/* Messages of the postmaster. */
static char postmaster_message[400];

/*
 * elog.c
 */

static char *
message_buffer(void)
{
	return current ? current->error : postmaster_message;
}

bool
errstart(int level, const char *domain)
{
	error_level = level;
	return true;
}

RETURNS(bool, errstart(level, domain), errstart_cold, int level, const char *domain);

int
errmsg(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(message_buffer(), sizeof(postmaster_message), format, arguments);
	va_end(arguments);
	return 0;
}

int
errmsg_internal(const char *format,...)
{
	strlcpy(message_buffer(), format, sizeof(postmaster_message));
	return 0;
}

RETURNS(int, 0, errdetail, const char *format,...);
RETURNS(int, 0, errhint, const char *format,...);
RETURNS(int, 0, errcode, int code);
RETURNS(int, 0, errhidestmt, bool hide);
RETURNS(int, 0, errhidecontext, bool hide);

/* An error ends the statement; the main function of the process continues. */
void
errfinish(const char *file, int line, const char *function)
{
	trace("%-28s %s: %s", function, error_level >= ERROR ? "ERROR" : "LOG", message_buffer());
	if (error_level < ERROR)
		return;
	if (current == NULL || PG_exception_stack == NULL)
		fail("an error outside of a statement: %s", message_buffer());
	siglongjmp(*PG_exception_stack, error_level);
}

/* elog.c */
void
pg_re_throw(void)
{
	siglongjmp(*PG_exception_stack, error_level);
}

/* assert.c */
void
#if PG_VERSION_NUM >= 160000
ExceptionalCondition(const char *condition, const char *file, int line)
#else
ExceptionalCondition(const char *condition, const char *type, const char *file, int line)
#endif
{
	const char *name = strrchr(file, '/');

	fail("assertion %s at %s:%d", condition, name ? name + 1 : file, line);
}

/*
 * Memory: a ring, as long as no statement uses more than a MB.
 */

static char ring[1 << 20];
static size_t ring_used;

void *
palloc(Size size)
{
	size = MAXALIGN(size);
	if (ring_used + size > sizeof(ring))
		ring_used = 0;
	ring_used += size;
	return ring + ring_used - size;
}

RETURNS(void *, palloc(size), MemoryContextAlloc, MemoryContext context, Size size);
RETURNS(char *, strcpy(palloc(strlen(text) + 1), text), pstrdup, const char *text);

void
pfree(void *p)
{
}

/* dynahash.c: a table of a transaction; its entries begin with the key. */
struct HTAB
{
	Size		key_size,
				entry_size;
	int			count;
	char		entries[1024];
};

MemoryContext TopTransactionContext OF_PROCESS = NULL;

HTAB *
hash_create(const char *name, long size, const HASHCTL * control, int flags)
{
	static OF_PROCESS HTAB table =
	{
		0
	};

	table.key_size = control->keysize;
	table.entry_size = control->entrysize;
	table.count = 0;
	return &table;
}

void *
hash_search(HTAB * table, const void *key, HASHACTION action, bool *found)
{
	char	   *entry = table->entries;

	for (int i = 0; i < table->count; i++, entry += table->entry_size)
		if (memcmp(entry, key, table->key_size) == 0)
			return entry;
	if (action == HASH_FIND)
		return NULL;
	Assert((size_t) ++table->count * table->entry_size <= sizeof(table->entries));
	memcpy(entry, key, table->key_size);
	return entry;
}

/*
 * Small functions
 */

/* port/qsort.c, and xid.c */
void
pg_qsort(void *base, size_t count, size_t size, int (*compare) (const void *, const void *))
{
	qsort(base, count, size, compare);
}

extern int	xidComparator(const void *a, const void *b);

int
xidComparator(const void *a, const void *b)
{
	TransactionId x = *(const TransactionId *) a;
	TransactionId y = *(const TransactionId *) b;

	return (x > y) - (x < y);
}

RETURNS(uint64, low + rnd() % (high - low + 1), pg_prng_uint64_range, pg_prng_state * state, uint64 low,
		uint64 high);

/* port/pg_strong_random.c */
bool
pg_strong_random(void *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *) p)[i] = (char) rnd();
	return true;
}

/* Any checksum does. */
static pg_crc32c
simple_checksum(pg_crc32c sum, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ ((const unsigned char *) data)[i]) * 16777619;
	return sum;
}

pg_crc32c	(*pg_comp_crc32c) (pg_crc32c, const void *, size_t) = simple_checksum;

size_t
strlcpy(char *to, const char *from, size_t size)
{
	size_t		length = strlen(from);

	if (size > 0)
	{
		memcpy(to, from, Min(length, size - 1));
		to[Min(length, size - 1)] = '\0';
	}
	return length;
}

RETURNS(int, vsnprintf(to, size, format, arguments), pg_vsnprintf, char *to, size_t size,
		const char *format, va_list arguments);
RETURNS(const char *, "", timestamptz_to_str, TimestampTz t);
RETURNS(Oid, 10, GetUserId, void);
RETURNS(bool, true, has_privs_of_role, Oid member, Oid role);
RETURNS(bool, false, path_is_prefix_of_path, const char *path, const char *other);

/* guc.c: no file has set a setting. */
#if PG_VERSION_NUM >= 160000
RETURNS(struct config_generic *, NULL, find_option, const char *name, bool create, bool skip, int level);
RETURNS(void *, malloc(size), guc_malloc, int level, size_t size);
#else
RETURNS(struct config_generic **, NULL, get_guc_variables, void);
RETURNS(int, 0, GetNumConfigOptions, void);
#endif

#if PG_VERSION_NUM >= 170000
/* wait_event.c */
RETURNS(uint32, 0, WaitEventExtensionNew, const char *name);
#endif

/*
 * Rows of one column of type bigint, for the guard
 */

RETURNS(int, 1, SPI_fnumber, TupleDesc type, const char *name);
RETURNS(Oid, 20, SPI_gettypeid, TupleDesc type, int number);
RETURNS(Oid, type, getBaseType, Oid type);

void
heap_datum_check(HeapTupleHeader row, TupleDesc type)
{
}

#if PG_VERSION_NUM >= 180000
void
verify_compact_attribute(TupleDesc type, int number)
{
}
#endif

/* They are not called for such a row. */
RETURNS(Datum, 0, nocachegetattr, HeapTuple row, int number, TupleDesc type);
RETURNS(Datum, 0, getmissingattr, TupleDesc type, int number, bool *null);
RETURNS(Datum, 0, heap_getsysattr, HeapTuple row, int number, TupleDesc type, bool *null);
