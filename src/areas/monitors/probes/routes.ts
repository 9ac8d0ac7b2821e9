import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import {
  ProbeResultsAccepted,
  ProbeResultsBody,
  ProbeWork,
  ProbeWorkQuery,
  RESULTS_BYTES_MAX,
} from "./schema.ts";
import type { ProbeWorkplace } from "./work.ts";

/** JSON levels of a request with results. */
const RESULTS_LEVELS_MAX = 5;

/** What probes call, with their tokens. */
export function probeRoutes(api: Api, workplace: ProbeWorkplace) {
  return new Elysia({ tags: ["Monitors"] })
    .get(
      "/v1/probe/work",
      api.open(
        {
          name: "probe.work.read",
          summary: "Get the monitors of a probe, or wait for a change",
          description:
            "Called by `ninefold probe` with the token of the probe as `Authorization: Bearer`. A second request ends the first.",
          errors: [
            "unauthorized",
            "forbidden",
            "probe_version_unsupported",
            "rate_limit_exceeded",
            "service_unavailable",
          ],
          query: ProbeWorkQuery,
          response: ProbeWork,
        },
        ({ call, query }) => workplace.poll(call, query),
      ),
    )
    .post(
      "/v1/probe/results",
      api.open(
        {
          name: "probe.results.create",
          summary: "Send results of a probe",
          description:
            "Called by `ninefold probe` with the token of the probe as `Authorization: Bearer`. A result counts once, for a monitor that names the probe. Its time is that of the receipt less `age_ms`, and less the time that a bad line delayed the request by; one that is older than the interval and the timeout of its monitor is stored in the history only.",
          errors: ["unauthorized", "forbidden", "rate_limit_exceeded", "service_unavailable"],
          bodyLimits: { bytesMax: RESULTS_BYTES_MAX, levelsMax: RESULTS_LEVELS_MAX },
          example: { results: [] },
          body: ProbeResultsBody,
          response: ProbeResultsAccepted,
        },
        ({ call, body }) => workplace.receive(call, body),
      ),
    );
}
