-- Writes what a transaction has changed, unless another came first.
-- KEYS[1] and ARGV[1], ARGV[2]: hash and field of the record, and what the
-- transaction read there ('' for nothing). For each further key three arguments:
-- what to do with it, a field, a value.
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then
	return 0
end
for i = 2, #KEYS do
	local what, field, value = ARGV[3 * i - 3], ARGV[3 * i - 2], ARGV[3 * i - 1]
	if what == 'set' then
		redis.call('HSET', KEYS[i], field, value)
	elseif what == 'remove' then
		redis.call('HDEL', KEYS[i], field)
	else
		redis.call('DEL', KEYS[i])
	end
end
return 1
