import { StartupError } from "../kernel/errors.ts";
import { pathSegment, withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** `ninefold catch export BUCKET`: prints its events, oldest first, one JSON object per line. */
export function catchExport(args: Arguments): Promise<number> {
  const path = `/v1/catch/${pathSegment("BUCKET", args.words[0] ?? "")}/events/export`;
  const query = new URLSearchParams();
  for (const name of ["since", "until"]) {
    const time = args.text(`--${name}`);
    if (time !== null) query.set(name, time);
  }
  return withApi(args, async (api) => {
    for (;;) {
      const { text, cursor } = await api.read(`${path}?${query}`);
      print(text);
      if (cursor === null) return 0;
      if (cursor === query.get("cursor"))
        throw new StartupError("The server returned the same cursor twice, so the export would not end.");
      query.set("cursor", cursor);
    }
  });
}
