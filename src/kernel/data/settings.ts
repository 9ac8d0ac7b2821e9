import type { Static, TSchema } from "@sinclair/typebox";

/** A setting: its schema in requests and in responses, and its default. */
interface Setting {
  readonly given: TSchema;
  readonly shown: TSchema;
  readonly initial: unknown;
}

/** Declares a setting. `initial`: its value where a new thing is created without it. */
export function setting<Given extends TSchema, Shown extends TSchema>(
  given: Given,
  shown: Shown,
  initial: Static<Shown>,
) {
  return { given, shown, initial };
}

/** One part of each setting: the schemas of a body or of a response, or the defaults. */
export function partOf<const Settings extends Readonly<Record<string, Setting>>, Part extends keyof Setting>(
  settings: Settings,
  part: Part,
) {
  const parts = Object.entries(settings).map(([field, one]) => [field, one[part]]);
  return Object.fromEntries(parts) as { [Field in keyof Settings]: Settings[Field][Part] };
}
