import { beforeAll } from "bun:test";
import { Draft } from "../../../src/configuration/import/draft.ts";
import type { Kind } from "../../../src/configuration/kinds.ts";
import { useTestServer } from "../../support/server.ts";
import { Configured } from "../support.ts";

/** Output of an import. */
export interface Imported {
  readonly text: string;
  readonly notes: readonly string[];
}

/** Imports, and applies the result to a separate server. */
export function useImports() {
  const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "all"] });
  let kinds: readonly Kind[] = [];
  beforeAll(async () => {
    const account = await server.account({ tier: "unlimited" });
    kinds = new Configured(server, account.key ?? "").kinds;
  });
  const draft = (convert: (draft: Draft) => void): Draft => {
    const made = new Draft(kinds);
    convert(made);
    return made;
  };
  return {
    server,
    draft,
    run(convert: (draft: Draft) => void): Imported {
      const made = draft(convert);
      return { text: made.text(), notes: made.notes };
    },
    /** Resolves to the steps of the plans before and after the file is applied to a new account. */
    async apply(text: string): Promise<readonly [before: string[], after: string[]]> {
      const account = await server.account({ tier: "unlimited" });
      const configured = new Configured(server, account.key ?? "");
      const before = await configured.lines(text);
      await configured.apply(text);
      return [before, await configured.lines(text)];
    },
  };
}

/** Notes without those of secrets. */
export function losses({ notes }: Imported): readonly string[] {
  return notes.filter((note) => !note.includes("is a secret"));
}
