# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random queries, and a small database for them."""

import random

SCHEMA = """
create table customer(id integer primary key, name text, city text, age int,
                      note text collate nocase);
create table orders(id integer primary key, customer_id int, total real, state text,
                    day text);
create table item(order_id int, part text, price real, amount int);
create index orders_customer on orders(customer_id);
create index orders_state on orders(state);
create index item_order on item(order_id);
create index customer_city on customer(city);
create view rich as select * from orders where total > 100;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200)
insert into customer select i, 'name' || (i * 7919 % 500), 'city' || (i * i % 17),
                            18 + i * 37 % 60, 'Note' || (i % 5) from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 900)
insert into orders select i, i * 31 % 200 + 1, (i * 7919 % 10000) / 10.0,
                          case when i % 50 = 0 then 'open' else 'closed' end,
                          printf('2024-%02d-%02d', i % 12 + 1, i % 28 + 1) from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
insert into item select i % 900 + 1, 'part' || (i * 31 % 97), (i * 733 % 1000) / 7.0,
                        i % 9 from n;
analyze;
"""

TABLES = {
    "customer": ("c", ("id", "name", "city", "age", "note")),
    "orders": ("o", ("id", "customer_id", "total", "state", "day")),
    "item": ("i", ("order_id", "part", "price", "amount")),
}
JOINS = {
    ("customer", "orders"): "c.id = o.customer_id",
    ("orders", "item"): "o.id = i.order_id",
}
COMPARISONS = ("=", "<", ">", "<=", ">=", "<>", "==", "!=")


class Queries:
    """Draws queries, which may use all forms of terms that the extension supports."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def literal(self, column: str) -> str:
        """Returns a literal that may occur in a column."""
        number = self.draw.randint
        texts = {
            "name": f"'name{number(0, 500)}'",
            "city": f"'city{number(0, 18)}'",
            "note": f"'NOTE{number(0, 6)}'",
            "state": self.draw.choice(["'open'", "'closed'", "'x''y'"]),
            "day": f"'2024-{number(1, 12):02d}-{number(1, 28):02d}'",
            "part": f"'part{number(0, 99)}'",
            "total": self.draw.choice([f"{number(0, 9999) / 10}", "-3", "1e2"]),
            "price": f"{number(0, 1500) / 10}",
        }
        return texts.get(column, str(number(0, 900 if "id" in column else 80)))

    def term(self, tables: list[str], depth: int = 0) -> str:
        """Returns a condition on one table, or a condition with a subquery."""
        alias, columns = TABLES[self.draw.choice(tables)]
        column = self.draw.choice(columns)
        name = (
            f"{alias}.{column}"
            if column == "id" or self.draw.random() < 0.8
            else column
        )
        literal, negated = self.literal(column), self.draw.choice(["", "not "])
        listed = ", ".join(self.literal(column) for _ in range(self.draw.randint(1, 4)))
        prefix = self.draw.choice(["%", "", "name%", "2024-0"])
        pattern = f"'{prefix}{self.draw.randint(0, 99)}%'"
        forms = [
            f"{name} {self.draw.choice(COMPARISONS)} {literal}",
            f"{name} {self.draw.choice(COMPARISONS)} {literal}",
            f"{literal} {self.draw.choice(COMPARISONS)} {name}",
            f"{name} {negated}between {literal} and {self.literal(column)}",
            f"{name} {negated}in ({listed})",
            f"{name} {negated}like {pattern}",
            f"{name} is {negated}null",
            f"length({name}) + 1 > {self.draw.randint(0, 9)} /* and */",
            f"{name} <> {alias}.{self.draw.choice(columns)}",
        ]
        if depth < 2:
            inner = self.term(tables, depth + 1)
            key = "order_id" if alias == "i" else "id"
            forms += [
                f"({inner} or {self.term(tables, depth + 1)})",
                f"not ({inner})",
                f"case when {inner} and 1 then {self.draw.randint(0, 1)} else 1 end",
                f"exists (select 1 from item x where x.order_id = {alias}.{key}"
                f" and x.price > {self.literal('price')})",
                f"{alias}.{key} in (select z.id from orders z where z.state ="
                f" {self.literal('state')} and z.total > {self.literal('total')})",
            ]
        return self.draw.choice(forms)

    def source(self, tables: list[str]) -> tuple[str, list[str]]:
        """Returns a FROM clause, and the conditions that WHERE must have."""
        if len(tables) == 1 or self.draw.random() < 0.4:
            parts = (f"{table} {TABLES[table][0]}" for table in tables)
            return ", ".join(parts), [
                on for pair, on in JOINS.items() if {*pair} <= {*tables}
            ]
        join = self.draw.choice(
            [" join ", " inner join ", " left join ", " cross join "]
        )
        text = f"{tables[0]} as {TABLES[tables[0]][0]}"
        for count, table in enumerate(tables[1:], 2):
            on = [
                on
                for pair, on in JOINS.items()
                if table in pair and {*pair} <= {*tables[:count]}
            ]
            if self.draw.random() < 0.4:
                on.append(self.term([table], 2))
            text += f"{join}{table} {TABLES[table][0]} on {' and '.join(on)}"
        return text, []

    def query(self) -> str:
        """Returns a SELECT. Some results depend on the order of rows."""
        tables = self.draw.choice(
            [
                ["customer"],
                ["orders"],
                ["item"],
                ["customer", "orders"],
                ["orders", "item"],
                ["customer", "orders", "item"],
            ]
        )
        source, conditions = self.source(tables)
        conditions += [self.term(tables) for _ in range(self.draw.randint(1, 4))]
        alias, columns = TABLES[tables[0]]
        first, second = (f"{alias}.{name}" for name in self.draw.sample(columns, 2))
        result, tail = self.draw.choice(
            [
                (f"{first}, {second}", ""),
                (f"{first} as f, {second} s", ""),
                (f"count(*), sum({first}), max({second})", ""),
                (f"{first}, count(*)", f" group by {first}"),
                (f"{first} as g, avg({second})", " group by g having count(*) > 1"),
                (f"{first}, {second}, count(*)", f" group by {first}"),
                (f"distinct {first}, {second}", ""),
                (f"(select max(total) from orders where id = {first}), {second}", ""),
                (f"(select total from orders where id > {first}), {second}", ""),
                (f"group_concat({first})", ""),
                (f"{first}, {second}", " limit 5"),
                (
                    f"{first}, {second}",
                    " union all select 1, 2 from orders o where o.total < 50",
                ),
            ]
        )
        start = (
            "with o as (select * from orders where state = 'open') "
            if self.draw.random() < 0.05
            else ""
        )
        where = " and ".join(conditions)
        return f"{start}select {result} from {source} where {where}{tail}"
