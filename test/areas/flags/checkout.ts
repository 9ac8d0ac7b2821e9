import type { StoredDefinition } from "../../../src/areas/flags/definitions/schema.ts";

/** A rule that serves one variant, and one with two conditions that splits. */
export const CHECKOUT_RULES: NonNullable<StoredDefinition["rules"]> = [
  {
    when: [{ attribute: "email", op: "ends_with", values: ["@acme.com"], ignore_case: true }],
    serve: { variant: "on" },
  },
  {
    when: [
      { attribute: "plan", op: "in", values: ["pro", "scale"] },
      { attribute: "app.version", op: "semver_gte", values: ["2.3.0"] },
    ],
    serve: {
      split: [
        { variant: "on", weight: 25 },
        { variant: "off", weight: 75 },
      ],
    },
  },
];
