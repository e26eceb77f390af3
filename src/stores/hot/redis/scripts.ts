import { createHash } from 'node:crypto';

export interface Script {
  text: string;
  sha: string;
}
export function define(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** A session is a list: its messages' lines, oldest first, and last its head (`session-lines.ts`). Whatever else stands under its name is none. */
const HEAD = `
local head = redis.call('TYPE', KEYS[1]).ok == 'list' and redis.call('LINDEX', KEYS[1], -1)
local version, stamp
if head then
  version, stamp = string.match(head, '^{"version":(%d+),"stamp":"([^"]*)"')
  version = tonumber(version)
end
`;

/** ARGV: the stamp that the caller knows. Its whole list, 1 where it has that stamp, or nothing. */
export const READ_SESSION = define(`${HEAD}
if not version then return false end
if stamp == ARGV[1] then return 1 end
return redis.call('LRANGE', KEYS[1], 0, -1)
`);

/** ARGV: version, seconds, lines and head. 0: the stored version is newer. */
export const PUT_SESSION = define(`${HEAD}
if version and version > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
`);

/**
 * ARGV: version, seconds, most messages, then lines and head. Gives the stamp before; 0: the stored state is not the one before this
 * version, and is dropped. The window is cut as `wire/history-window.ts` cuts it; the conformance suite holds the two together.
 */
export const APPEND_TURN = define(`${HEAD}
if version then
  if version ~= tonumber(ARGV[1]) - 1 then redis.call('DEL', KEYS[1]) return 0 end
  redis.call('RPOP', KEYS[1])
else
  redis.call('DEL', KEYS[1])
  if ARGV[1] ~= '1' then return 0 end
end
for i = 4, #ARGV - 1 do redis.call('RPUSH', KEYS[1], ARGV[i]) end

local function role(i)
  local line = i >= 0 and redis.call('LINDEX', KEYS[1], i)
  return line and string.match(line, '^{"role":"([^"]*)"')
end
local count = redis.call('LLEN', KEYS[1])
local first = math.max(0, count - tonumber(ARGV[3]))
if first > 0 then
  local start
  for i = first, count - 1 do
    if role(i) == 'user' and role(i - 1) ~= 'user' then start = i break end
  end
  if not start then
    for i = first, count - 1 do
      if role(i) ~= 'tool' then start = i break end
    end
  end
  if not start then
    start = count - 1
    while start > 0 and role(start) == 'tool' do start = start - 1 end
  end
  redis.call('LTRIM', KEYS[1], start, -1)
end
redis.call('RPUSH', KEYS[1], ARGV[#ARGV])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return stamp or ''
`);

/** ARGV: holder, milliseconds. The server's clock is the fencing token: it grows from holder to holder, and needs no key of its own. */
export const ACQUIRE = define(`
local time = redis.call('TIME')
local token = string.format('%.0f', time[1] * 1000000 + time[2])
if redis.call('SET', KEYS[1], token .. ' ' .. ARGV[1], 'NX', 'PX', ARGV[2]) then return token end
return false
`);
const HELD = `
local kept = redis.call('GET', KEYS[1])
if not kept or string.sub(kept, -#ARGV[1]) ~= ARGV[1] then return 0 end
`;
/** ARGV: holder. */
export const RELEASE = define(`${HELD} return redis.call('DEL', KEYS[1])`);
/** ARGV: holder, milliseconds. */
export const RENEW = define(`${HELD} return redis.call('PEXPIRE', KEYS[1], ARGV[2])`);
