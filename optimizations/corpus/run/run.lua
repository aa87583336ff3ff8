
for round = 1, 5 do
local function fibonacci(n) if n < 2 then return n end
  return fibonacci(n - 1) + fibonacci(n - 2) end
print(fibonacci(31 + round % 2))
local body = {}
for i = 1, 200000 do body[i] = (i * 7919) % 100003 end
table.sort(body)
print(body[1], body[#body // 2], body[#body])
local words, text = {}, {}
for i = 1, 60000 do text[i] = "w" .. (i * i) % 5003 end
for word in table.concat(text, " "):gmatch("%a%d+") do
  words[word] = (words[word] or 0) + 1 end
local total = 0
for word, count in pairs(words) do total = total + #word * count end
print(total, (table.concat(text, ","):gsub("w1", "x"):len()))
local point = setmetatable({}, {__index = function(_, key) return #key end})
local sum = 0.0
for i = 1, 3000000 do sum = sum + (point.abc * i) % 7 / (1 + i & 3) end
print(string.format("%.6f", sum))
end
