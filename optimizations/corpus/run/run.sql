
CREATE TABLE item(id INTEGER PRIMARY KEY, grp INT, price INT, name TEXT);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 700000)
INSERT INTO item SELECT x, (x * 7919) % 1009, (x * x) % 10007,
  'item ' || ((x * 104729) % 65537) FROM c;
CREATE INDEX by_group ON item(grp);
CREATE INDEX by_name ON item(name);
SELECT grp, count(*), sum(price), max(name) FROM item
  GROUP BY grp ORDER BY 3 DESC LIMIT 5;
SELECT count(*), sum(a.price) FROM item a JOIN item b ON a.id = b.grp
  WHERE b.price % 3 = 1;
SELECT count(*) FROM item WHERE name LIKE '%77%' AND price BETWEEN 100 AND 5000;
UPDATE item SET price = price + grp WHERE id % 3 = 0;
DELETE FROM item WHERE grp IN
  (SELECT grp FROM item GROUP BY grp HAVING avg(price) > 5600);
SELECT count(*), sum(price), sum(length(name)) FROM item;
SELECT name, rank FROM (SELECT name,
  rank() OVER (PARTITION BY grp ORDER BY price, id) AS rank
  FROM item WHERE grp < 200) WHERE rank = 3 ORDER BY name, rank LIMIT 5;
