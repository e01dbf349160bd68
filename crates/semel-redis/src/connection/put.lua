-- Writes a value unless what is there forbids it. Heads are compared, as src/entry/mod.rs has them:
-- "SML", kind, operation id (16 bytes), version (8 bytes, the highest first).
local new, old = ARGV[1], redis.call('GETRANGE', KEYS[1], 0, 27)
if #old == 28 and string.sub(old, 1, 3) == 'SML' then
  local kind = string.sub(old, 4, 4)
  -- A marker stands until its time is over.
  if kind == 'M' then return 0 end
  -- So does what is said of another operation under the same key.
  if string.sub(old, 5, 20) ~= string.sub(new, 5, 20) then return 0 end
  local order = 0
  for at = 21, 28 do
    local was, is = string.byte(old, at), string.byte(new, at)
    if was ~= is then
      order = is - was
      break
    end
  end
  -- What is older came late. A guard is prolonged by a later look at the same version.
  if order < 0 or (order == 0 and kind ~= 'G') then return 0 end
end
redis.call('SET', KEYS[1], new, 'PX', ARGV[2])
return 1
