
function Shape(n) { this.n = n; this.sides = []; }
Shape.prototype.area = function () { return this.sides.reduce(
  function (a, b) { return a + b * b; }, 0); };
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
print(fibonacci(27));
var shapes = [], i, j, seed = 7;
function random() { seed = (seed * 16807) % 2147483647; return seed; }
for (i = 0; i < 4000; ++i) { var s = new Shape(i);
  for (j = 0; j < 5; ++j) s.sides.push(random() % 100); shapes.push(s); }
shapes.sort(function (a, b) { return a.area() - b.area() || a.n - b.n; });
print(shapes[0].n, shapes[2000].area(), shapes[3999].n);
var text = shapes.map(function (s) { return "s" + s.n + ":" + s.sides; }).join(";");
print(text.length, text.replace(/s(\d)(\d+):/g, "$2-$1:").split(/[;,]/).length);
print((text.match(/(?:1|2)\d,(\d)\1/g) || []).length);
var back = JSON.parse(JSON.stringify(shapes)), counts = {};
back.forEach(function (s) { s.sides.forEach(function (n) {
  counts["k" + n] = (counts["k" + n] || 0) + 1; }); });
print(Object.keys(counts).sort().slice(0, 5), JSON.stringify(counts).length);
var x = 0; for (i = 1; i < 2000000; ++i) x += Math.sqrt(i) / (1 + (i & 7));
print(x.toFixed(6), (x * 1e20).toString(), x.toString(16).slice(0, 6));
try { null.x; } catch (e) { print(e.name, new Date(86400000).toISOString()); }
for (i = 0; i < 3000; ++i) eval("x += (function(a) { return a * " + i + "; })(2)");
print(Math.floor(x), encodeURIComponent(text.slice(0, 30)), parseInt("ff", 16));
