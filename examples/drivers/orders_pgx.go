// Snowflake IDs with Go's pgx (version 4, Debian's): RETURNING, a batch, COPY, JSON.
//
// Packages: golang-go golang-github-jackc-pgx-v4-dev
// Not in script/test: Go is large.
//
// An ID is an int64.  In JSON it is passed as a string.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"

	"github.com/jackc/pgx/v4"
)

// An Order has its ID as a string in JSON, since numbers of JavaScript cannot hold it.
type Order struct {
	ID   int64  `json:"id,string"`
	Item string `json:"item"`
}

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	must(err)
	_, err = db.Exec(ctx, "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)")
	must(err)

	// The ID comes back with the row.
	order := Order{Item: "a lamp"}
	must(db.QueryRow(ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id", order.Item).Scan(&order.ID))
	fmt.Println("order", order.ID)
	check(order.ID > 1<<60, "the ID is an int64")

	// A batch is one round trip, and one transaction; each statement has its result, in order.
	batch := &pgx.Batch{}
	for i := 0; i < 1000; i++ {
		batch.Queue("INSERT INTO orders (item) VALUES ($1) RETURNING id, item", fmt.Sprint("item ", i))
	}
	results := db.SendBatch(ctx, batch)
	last := order.ID
	for i := 0; i < 1000; i++ {
		var id int64
		var item string
		must(results.QueryRow().Scan(&id, &item))
		check(item == fmt.Sprint("item ", i) && id > last, "results come in the order of the batch")
		last = id
	}
	must(results.Close())

	// COPY returns no keys: fetch them before, in the same transaction.
	transaction, err := db.Begin(ctx)
	must(err)
	var ids []int64
	must(transaction.QueryRow(ctx, "SELECT array_agg(id) FROM snowflake_nextvals($1) AS id", 1000).Scan(&ids))
	copied, err := transaction.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "item"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]interface{}, error) { return []interface{}{ids[i], "a desk"}, nil }))
	must(err)
	must(transaction.Commit(ctx))
	check(copied == 1000, "COPY has written the rows")

	// A variable that cannot hold the ID is an error, not a wrong number.
	var narrow int32
	err = db.QueryRow(ctx, "SELECT $1::bigint", order.ID).Scan(&narrow)
	fmt.Println("int32:", err)
	check(err != nil, "an ID fits no int32")

	// Exact as rows, in a relation and in an aggregate.
	exact := []int64{1<<53 - 1, 2116681624581046272, math.MaxInt64}
	_, err = db.Exec(ctx, "CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders)")
	must(err)
	for _, id := range exact {
		_, err = db.Exec(ctx, "WITH exact AS (INSERT INTO orders (id, item) VALUES ($1, 'exact')) INSERT INTO lines VALUES ($1)", id)
		must(err)
	}
	for _, query := range []string{"SELECT id FROM orders WHERE item = 'exact' ORDER BY id",
		"SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id", "SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1"} {
		rows, err := db.Query(ctx, query)
		must(err)
		var found []int64
		for rows.Next() {
			found = append(found, 0)
			must(rows.Scan(&found[len(found)-1]))
		}
		must(rows.Err())
		check(fmt.Sprint(found) == "[9007199254740991 2116681624581046272 9223372036854775807]", "IDs are exact: "+query)
	}

	// In JSON, a number loses digits if it is read as a float64, as JavaScript and Go itself do.
	var number interface{}
	must(json.Unmarshal([]byte(fmt.Sprint(order.ID|1)), &number))
	check(int64(number.(float64)) != order.ID|1, "a number loses digits")
	text, err := json.Marshal(order)
	must(err)
	check(string(text) == fmt.Sprintf(`{"id":"%d","item":"a lamp"}`, order.ID), "the ID is a string")
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
