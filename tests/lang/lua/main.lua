local other = require("other")
local mode = arg[1]
if mode == "talk" then
	print(other.greeting())
	for i = 2, #arg do print("arg: " .. arg[i]) end
	for line in io.lines() do print("stdin: " .. line) end
	os.exit(7)
elseif mode == "fault" then
	error("boom ä")
elseif mode == "big" then
	for _ = 1, 10 do io.write(string.rep("x", 1 << 20)) end
elseif mode == "loop" then
	while true do end
elseif mode == "memory" then
	local all = {}
	while true do all[#all + 1] = string.rep(tostring(#all), 1 << 18) end
end
