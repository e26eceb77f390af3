import { createHash } from 'node:crypto';

export interface Script {
  text: string;
  sha: string;
}
export function define(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** ARGV: text, version, seconds. 0: the stored version is newer. */
export const PUT_SESSION = define(`
local kept = redis.call('GET', KEYS[1])
local version = kept and tonumber(string.match(kept, '^{"version":(%d+),'))
if version and version > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
return 1
`);

/**
 * ARGV: version, system, lines of the turn, their number, most messages, seconds. 0: the stored state is not the one before this
 * version, and is dropped. The window is cut as \`wire/history-window.ts\` cuts it; the conformance suite holds the two together.
 */
export const APPEND_TURN = define(`
local kept = redis.call('GET', KEYS[1])
local version = tonumber(ARGV[1])
local lines = {}
if kept then
  local stored = tonumber(string.match(kept, '^{"version":(%d+),'))
  if stored ~= version - 1 then redis.call('DEL', KEYS[1]) return 0 end
  local number = 0
  for line in string.gmatch(kept, '[^\\n]+') do
    number = number + 1
    if number > 3 and line ~= ']}' then lines[#lines + 1] = line end
  end
elseif version ~= 1 then
  return 0
end
if #lines > 0 and tonumber(ARGV[4]) > 0 then
  if string.sub(lines[#lines], -1) ~= ',' then lines[#lines] = lines[#lines] .. ',' end
end
for line in string.gmatch(ARGV[3], '[^\\n]+') do lines[#lines + 1] = line end

local function role(i) return lines[i] and string.match(lines[i], '^{"role":"([^"]*)"') end
local first = math.max(1, #lines - tonumber(ARGV[5]) + 1)
if first > 1 then
  local start
  for i = first, #lines do
    if role(i) == 'user' and role(i - 1) ~= 'user' then start = i break end
  end
  if not start then
    for i = first, #lines do
      if role(i) ~= 'tool' then start = i break end
    end
  end
  if not start then
    start = #lines
    while start > 1 and role(start) == 'tool' do start = start - 1 end
  end
  first = start
end
local text = '{"version":' .. ARGV[1] .. ',\\n"system":' .. ARGV[2] .. ',\\n"messages":[\\n' .. table.concat(lines, '\\n', first) .. '\\n]}'
redis.call('SET', KEYS[1], text, 'EX', ARGV[6])
return 1
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
