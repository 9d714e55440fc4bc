/*
 * text.c
 *	  Conditions on the ID in place of conditions on its text in base 32.
 *
 * Each ID has one text, and texts that are compared byte by byte are in the order of their IDs
 * (core/base32.h).  Let i(t) be snowflake_base32_id(t): the ID whose text is t, or null if there is
 * none.  Let b(t) be the least ID whose text is not below t, and b'(t) the least whose text is
 * above it.  Then the replacements are:
 *
 *		snowflake_to_base32(id) = t				id = i(t)
 *		snowflake_to_base32(id) = ANY (array)	id = ANY (i(t) of each t)
 *		snowflake_to_base32(id) <  t			id <  b(t)
 *		snowflake_to_base32(id) >= t			id >= b(t)
 *		snowflake_to_base32(id) <= t			id <  b'(t)
 *		snowflake_to_base32(id) >  t			id >= b'(t)
 *		snowflake_to_base32(id) < snowflake_to_base32(other), and so on		id < other
 *
 * The first two can be null where the original is false, so they are made only in conditions that
 * are connected by AND and OR.  No bigint would do in place of null, since a table can have it.
 *
 * A collation that is not deterministic takes some texts as equal that differ, so nothing is
 * replaced.  < and the others are replaced only for the collation "C", which compares bytes: other
 * collations can sort letters and digits in any order.  They are replaced only for a constant t.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/typcache.h"

#include "compat.h"
#include "core/base32.h"
#include "functions/functions.h"
#include "pushdown/text.h"

/*
 * The ID of a text, as a call to the function.  NULL if the function is missing or the user may
 * not call it.
 */
static Expr *
id_of_text(SfPass *pass, const SfCall *call, Expr *text, Oid collation)
{
	return (Expr *) sf_call_sibling(call->function, "snowflake_base32_id", snowflake_base32_id,
									list_make1(text), collation, pass->depends_on_role);
}

static Expr *
replace_equal(SfPass *pass, const SfComparison *comparison, Node *text, Oid collation)
{
	Expr	   *id;

	if (pass->in_expression || !sf_is_worth_replacing(pass, comparison, text))
		return NULL;
	id = id_of_text(pass, &comparison->call, copyObject((Expr *) text), collation);
	if (id && IsA(text, Const))
		id = (Expr *) eval_const_expressions(NULL, (Node *) id);
	return id ? sf_compare_id(&comparison->call, BTEqualStrategyNumber, id) : NULL;
}

/*
 * A comparison with a constant that is not null.  If no text is as great as the constant, the
 * bound is the greatest ID, and the comparison becomes <= or >.
 */
static Expr *
replace_range(const SfComparison *comparison, Const *constant)
{
	text	   *value = DatumGetTextPP(constant->constvalue);
	size_t		length = VARSIZE_ANY_EXHDR(value);
	bool		is_below = comparison->strategy <= BTLessEqualStrategyNumber;
	bool		after = comparison->strategy == BTLessEqualStrategyNumber ||
	comparison->strategy == BTGreaterStrategyNumber;
	StrategyNumber strategy = is_below ? BTLessStrategyNumber : BTGreaterEqualStrategyNumber;
	int64		bound;
	bool		found = sf_base32_bound(VARDATA_ANY(value), length, &bound);

	if (found && after && sf_base32_is_text_of(VARDATA_ANY(value), length, bound))
		found = bound++ < PG_INT64_MAX;
	if (!found)
	{
		bound = PG_INT64_MAX;
		strategy = is_below ? BTLessEqualStrategyNumber : BTGreaterStrategyNumber;
	}
	return sf_compare_id(&comparison->call, strategy,
						 (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
											Int64GetDatum(bound), false, true));
}

/*
 * The ID whose text is compared with the text of another ID; NULL if it is not worth comparing
 * IDs.
 */
static Expr *
other_id(SfPass *pass, const SfCall *call, Node *text)
{
	SfCall		other;

	if (pass->root == NULL || !sf_time_call(text, &other) || other.function != call->function ||
		other.column->varlevelsup > 0)
		return NULL;
	return copyObject(other.id);
}

Expr *
sf_replace_text(SfPass *pass, const SfComparison *comparison, Node *text, Oid collation)
{
	Expr	   *id = other_id(pass, &comparison->call, text);

	if (id)
		return sf_compare_id(&comparison->call, comparison->strategy, id);
	if (comparison->strategy == BTEqualStrategyNumber)
		return replace_equal(pass, comparison, text, collation);
	return IsA(text, Const) ? replace_range(comparison, (Const *) text) : NULL;
}

Expr *
sf_replace_text_any(SfPass *pass, const SfComparison *comparison, ScalarArrayOpExpr *any)
{
	ScalarArrayOpExpr *result;
	ArrayCoerceExpr *ids;
	CaseTestExpr *element;
	Node	   *array = lsecond(any->args);

	if (pass->in_expression || exprType(array) != TEXTARRAYOID ||
		!sf_is_worth_replacing(pass, comparison, array))
		return NULL;

	/* a cast of the array, whose elements are cast by the function */
	element = makeNode(CaseTestExpr);
	element->typeId = TEXTOID;
	element->typeMod = -1;
	element->collation = any->inputcollid;
	ids = makeNode(ArrayCoerceExpr);
	ids->arg = copyObject((Expr *) array);
	ids->elemexpr = id_of_text(pass, &comparison->call, (Expr *) element, any->inputcollid);
	ids->resulttype = INT8ARRAYOID;
	ids->resulttypmod = -1;
	ids->coerceformat = COERCE_EXPLICIT_CAST;
	ids->location = -1;
	if (ids->elemexpr == NULL)
		return NULL;

	result = makeNode(ScalarArrayOpExpr);
	result->opno = lookup_type_cache(INT8OID, TYPECACHE_EQ_OPR)->eq_opr;
	set_sa_opfuncid(result);
	result->useOr = true;
	result->args = list_make2(copyObject(comparison->call.id), IsA(array, Const) ?
							  eval_const_expressions(NULL, (Node *) ids) : (Node *) ids);
	result->location = any->location;
	return (Expr *) result;
}
