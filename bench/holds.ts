import type { WrkScript } from "./benchmark.ts";
import { METERS, type Stage } from "./stage.ts";

/**
 * Number of requests between a hold and its capture. It exceeds the requests in flight, so that the hold exists by
 * then.
 */
const CAPTURE_LAG = 128;

/**
 * Hold and capture in turn, of meters spread over the whole file. The caller's own id connects the two requests of a
 * cycle.
 */
export function holdCycle(stage: Stage): WrkScript {
  return {
    lua: `
local head = " HTTP/1.1\\r\\nHost: ${new URL(stage.url).host}\\r\\nAuthorization: Bearer ${stage.key}\\r\\nContent-Type: application/json\\r\\n"
local capture = '{"amount":1}'
local tail = head .. "Content-Length: " .. #capture .. "\\r\\n\\r\\n" .. capture
function init(args)
  held = ${Date.now() % 1_000_000_000} * 1000000
  -- wrk calls request() once beforehand and does not send the result.
  captured = held + 1
  number = 0
end
local function path(hold)
  return string.format("/v1/meter/meter-%06d/holds", hold * 7919 % ${METERS})
end
function request()
  number = number + 1
  if number <= ${CAPTURE_LAG} or number % 2 == 0 then
    held = held + 1
    local body = '{"amount":2,"hold_id":"bench-' .. string.format("%.0f", held) .. '"}'
    return "POST " .. path(held) .. head .. "Content-Length: " .. #body .. "\\r\\n\\r\\n" .. body
  end
  captured = captured + 1
  return "POST " .. path(captured) .. "/bench-" .. string.format("%.0f", captured) .. "/capture" .. tail
end
`,
  };
}
