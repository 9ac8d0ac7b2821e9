import { beforeAll, expect, test } from "bun:test";
import { FlagdCore } from "@openfeature/flagd-core";
import { compileFlag, evaluate } from "../../../../src/areas/flags/evaluation/evaluation.ts";
import { parseDocuments, plainOf } from "../../../../src/configuration/document.ts";
import { Draft } from "../../../../src/configuration/import/draft.ts";
import { importFlagd } from "../../../../src/configuration/import/flagd/flagd.ts";
import type { Kind } from "../../../../src/configuration/kinds.ts";
import { Configured } from "../../../configuration/support.ts";
import { useTestServer } from "../../../support/server.ts";

const server = useTestServer({ manualClock: true });
let kinds: readonly Kind[] = [];
beforeAll(async () => {
  const account = await server.account({ tier: "unlimited" });
  kinds = new Configured(server, account.key ?? "").kinds;
});

const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "^", "~"];
const WANTED = ["1.0.0", "v1.2", "V1.2.3", "1.2.3-rc.1", "2"];
const GIVEN = [
  ...[
    "1.0.0",
    "v1.0.0",
    "V1.2.0",
    " 1.2.3 ",
    "1.2.3+build",
    "1.2.3-rc.1",
    "1.2.3-rc.2",
    "2.0.0-alpha",
    "2.0.0",
  ],
  ...["1", "1.2", "0.9", "10.0.0", "1.2.3.4", "abc", "", "01.2.3", "1.2.x"],
  ...[1, 1.2, 2, null, true],
];

/** The switch that the import makes of a targeting, evaluated for a version. */
function imported(targeting: object): (v: unknown) => unknown {
  const draft = new Draft(kinds);
  const flag = { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off", targeting };
  importFlagd(draft, { flags: { f: flag } });
  expect(draft.notes).toEqual([]);
  const [document] = parseDocuments("f.yaml", draft.text());
  const { flags } = plainOf(document as never) as { flags: { f: { enabled: boolean } } };
  const { enabled, ...definition } = flags.f;
  const compiled = compileFlag("f", enabled, definition);
  return (v) => evaluate(compiled, { v }, 0).value;
}

test.each(OPERATORS.flatMap((operator) => WANTED.map((wanted) => [operator, wanted] as const)))(
  "a version is compared as by flagd: %s %s",
  (operator, wanted) => {
    const condition = { sem_ver: [{ var: "v" }, operator, wanted] };
    for (const targeting of [{ if: [condition, "on", "off"] }, { if: [{ "!": condition }, "on", "off"] }]) {
      const core = new FlagdCore();
      const flag = { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off", targeting };
      core.setConfigurations(JSON.stringify({ flags: { f: flag } }));
      const own = imported(targeting);
      for (const v of GIVEN) {
        const theirs = core.resolveBooleanEvaluation("f", false, { v } as never).value;
        expect(own(v), `${JSON.stringify(targeting)} of ${JSON.stringify(v)}`).toBe(theirs);
      }
    }
  },
);
