-- A little of everything that Lua's interpreter, parser and libraries do; run under edges.c by tools/eval-jumptables.
local numbers = {}
for i = 1, 3000 do numbers[i] = (i * 7919) % 1009 end
table.sort(numbers)
local sum = 0
for i, v in ipairs(numbers) do sum = sum + v * i // 3 end
print(sum, string.format("%5.2f %x %q", 3.14159, 255, "a\nb"), ("hello world"):gsub("o", "0"))

local generator = coroutine.wrap(function(a) for i = 1, 10 do a = coroutine.yield(a * i) end end)
for i = 1, 10 do generator(i) end

local object = setmetatable({}, {
    __index = function(_, key) return key .. "!" end, __add = function() return 5 end, __lt = function() return true end,
    __le = function() return true end, __eq = function() return true end, __concat = function() return "c" end,
    __call = function(_, x) return x end, __len = function() return 3 end, __unm = function() return 1 end,
    __newindex = function(t, k, v) rawset(t, k, v) end, __close = function() end,
})
object.field = 1
print(object.foo, object + object, object < object, object <= object, object .. object, object(4), #object, -object)
print(7 // 2, 7 % 3, 2 ^ 10, 5 & 3, 5 | 3, 5 ~ 3, ~5, 1 << 4, 256 >> 2, -3, not nil, 7.5 // 2, 1e15 // 1, 3 == 3.0)
local ok, err = pcall(error, {code = 1})
print(ok, type(err), select("#", 1, 2, 3), pcall(string.rep), xpcall(error, debug.traceback ~= nil and print or print))
do local x <close> = object end
goto done
do print("skipped") end
::done::
print(load("local x <const> = 5; return x + ...")(3), math.type(3), tostring(1e100), tonumber("0x1p4"), utf8.char(8364))
for key in pairs(string) do if key == nil then print(key) end end
print(string.pack("<i4z", 7, "abc"):byte(1, -1))
print(("k=v; a=b"):match("(%w+)=(%w+)"), table.concat({1, 2, 3}, ","), next({}), rawlen({1, 2}), #table.pack(1, nil, 3))
for word in ("one two three"):gmatch("%a+") do io.write(word:upper():reverse(), " ") end
print(string.unpack("<i4", "\1\0\0\0"), ("x"):rep(3, "-"), ("%d"):format(3), ("abc"):find("b", 1, true), #arg >= 0)
local i = 0
repeat i = i + 1 until i > 5
while true do i = i - 1 if i < 0 then break end end
print(table.unpack({1, 2, 3}), table.remove({1, 2}), math.floor(2.5), math.max(1, 2), os.time() > 0, #tostring(print) > 0)
collectgarbage()
