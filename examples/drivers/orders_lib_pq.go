// Snowflake IDs with Go's lib/pq: RETURNING, batches, arrays.
//
// Packages: golang-go golang-github-lib-pq-dev
// Not in script/test: Go is large.
//
// An ID is an int64.  LastInsertId() is an error with this driver: use RETURNING.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"math"

	"github.com/lib/pq"
)

func main() {
	db, err := sql.Open("postgres", "")
	must(err)
	_, err = db.Exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)")
	must(err)

	// The ID comes back with the row.
	var order int64
	must(db.QueryRow("INSERT INTO orders (item) VALUES ($1) RETURNING id", "a lamp").Scan(&order))
	fmt.Println("order", order)
	check(order > 1<<60, "the ID is an int64")

	// A batch is one statement with an array; its keys are returned in the order of its rows, and increase.
	items := make([]string, 1000)
	for i := range items {
		items[i] = fmt.Sprint("item ", i)
	}
	rows, err := db.Query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id, item", pq.Array(items))
	must(err)
	last := order
	for i := range items {
		var id int64
		var item string
		check(rows.Next(), "a row for each item")
		must(rows.Scan(&id, &item))
		check(item == items[i] && id > last, "rows come back in their order")
		last = id
	}
	must(rows.Close())

	// COPY returns no keys: fetch them before, in the same transaction.
	transaction, err := db.Begin()
	must(err)
	var ids []int64
	must(transaction.QueryRow("SELECT array_agg(id) FROM snowflake_nextvals($1) AS id", 1000).Scan(pq.Array(&ids)))
	copy, err := transaction.Prepare(pq.CopyIn("orders", "id", "item"))
	must(err)
	for i, id := range ids {
		_, err = copy.Exec(id, items[i])
		must(err)
	}
	must(copy.Close())
	must(transaction.Commit())
	var copied int
	must(db.QueryRow("SELECT count(*) FROM orders WHERE id = ANY ($1)", pq.Array(ids)).Scan(&copied))
	check(copied == 1000, "COPY has written the rows")

	// Exact as rows, in a relation and in an aggregate.
	exact := []int64{1<<53 - 1, 2116681624581046272, math.MaxInt64}
	_, err = db.Exec("CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders)")
	must(err)
	for _, id := range exact {
		_, err = db.Exec("WITH exact AS (INSERT INTO orders (id, item) VALUES ($1, 'exact')) INSERT INTO lines VALUES ($1)", id)
		must(err)
	}
	for _, query := range []string{"SELECT id FROM orders WHERE item = 'exact' ORDER BY id",
		"SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id", "SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1"} {
		rows, err := db.Query(query)
		must(err)
		var found []int64
		for rows.Next() {
			found = append(found, 0)
			must(rows.Scan(&found[len(found)-1]))
		}
		must(rows.Err())
		check(fmt.Sprint(found) == "[9007199254740991 2116681624581046272 9223372036854775807]", "IDs are exact: "+query)
	}

	// LastInsertId() does not work with PostgreSQL.
	result, err := db.Exec("INSERT INTO orders (item) VALUES ('a desk')")
	must(err)
	_, err = result.LastInsertId()
	fmt.Println("LastInsertId():", err)
	check(err != nil, "LastInsertId() is an error")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(condition bool, what string) {
	if !condition {
		log.Fatal("not so: ", what)
	}
}
