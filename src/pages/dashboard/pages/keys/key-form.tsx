import { useState } from "preact/hooks";
import type { KeyCreateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { mayGive, ownProjects, projects } from "../../core/session.ts";
import type { Entered } from "../../ui/data-form.tsx";
import { CheckField, Choice } from "../../ui/field.tsx";
import { DataForm } from "../../ui/form.tsx";
import { BEARER_PREFIX, limitFields, withUses } from "./key-limits.tsx";

const AREAS = ["meter", "projects", "keys", "gate", "latch", "pulse", "relay", "catch", "witness"];
/** Scopes that have only one access level. */
const READ_AREAS = ["ofrep", "audit"];
const READ_ONLY = [...AREAS, ...READ_AREAS].map((area) => `${area}:read`);
const ALL = [
  ...AREAS.flatMap((area) => [`${area}:read`, `${area}:write`]),
  "check:write",
  ...READ_AREAS.map((area) => `${area}:read`),
];
/** Scopes of a key that anyone can read in a web page. */
const BROWSER = ["ofrep:read"];

type Access = "all" | "read" | "browser" | "some";

const ACCESS: readonly (readonly [Access, string])[] = [
  ["some", "Chosen scopes"],
  ["read", "Read only"],
  ["browser", "Browser key"],
  ["all", "Everything"],
];

/** Creates a key. `onCreated` receives the secret, which is not shown again. A new key starts without scopes. */
export function KeyForm(props: { onCreated: (secret: string) => void; onClose: () => void }) {
  const { onCreated, onClose } = props;
  const isBearer = (get: Entered): boolean => String(get("prefix")).trim() === BEARER_PREFIX;
  return (
    <DataForm
      title="New key"
      submit="Create key"
      operation="keys.create"
      start={{ prefix: BEARER_PREFIX, scopes: [] }}
      fields={(get) => [
        { name: "name", hint: "" },
        {
          name: "prefix",
          mono: true,
          hint: "Keys with sm call this API. Any other prefix is for keys that you issue to your customers.",
        },
        isBearer(get)
          ? { name: "scopes", control: AccessFields }
          : {
              name: "scopes",
              mono: true,
              required: true,
              placeholder: "orders:read, orders:items:*",
              hint: "Scopes of your API; verification compares them with the scopes that a request requires.",
            },
        [
          { name: "$project", label: "Project", options: projectOptions() },
          { name: "expires_at", label: "Expires", hint: "" },
        ],
        ...limitFields(isBearer(get)),
      ]}
      adapt={withUses}
      disabled={(get) => isBearer(get) && (get("scopes") as readonly string[]).length === 0}
      send={(body, get) => {
        const project = String(get("$project") ?? projectOptions()[0]?.[0] ?? "");
        return project === ""
          ? call("keys.create", { body: body as KeyCreateBody })
          : call("projects.keys.create", { params: { id: project }, body: body as KeyCreateBody });
      }}
      onDone={({ secret }) => onCreated(secret)}
      onClose={onClose}
    />
  );
}

function projectOptions(): (readonly [string, string])[] {
  const all = projects.value.map(({ id, name }) => [id, name] as const);
  return ownProjects() === null ? [["", "All projects"], ...all] : all;
}

/** What a key of this API may do. */
function AccessFields({ value, onChange }: { value: unknown; onChange: (scopes: unknown) => void }) {
  const [access, setAccess] = useState<Access>("some");
  const choose = (chosen: Access): void => {
    setAccess(chosen);
    onChange(
      { all: ["*"], read: READ_ONLY.filter(mayGive), browser: BROWSER.filter(mayGive), some: [] }[chosen],
    );
  };
  return (
    <>
      <div class="field">
        <span class="small">
          <strong>Access</strong>
        </span>
        <Choice
          label="Access"
          options={ACCESS.filter(([name]) => name !== "all" || mayGive("*"))}
          value={access}
          onChange={choose}
        />
        {access === "browser" ? (
          <small class="quiet">
            For web pages and apps: the key can evaluate flags through OpenFeature and nothing else.
          </small>
        ) : null}
      </div>
      {access === "some" ? <ScopeBoxes chosen={value as readonly string[]} onChange={onChange} /> : null}
    </>
  );
}

function ScopeBoxes(props: { chosen: readonly string[]; onChange: (chosen: readonly string[]) => void }) {
  const { chosen, onChange } = props;
  return (
    <fieldset class="scopes">
      <legend class="unseen">Scopes</legend>
      {ALL.filter(mayGive).map((scope) => (
        <CheckField
          key={scope}
          label={<code>{scope}</code>}
          checked={chosen.includes(scope)}
          onChange={(on) => onChange(on ? [...chosen, scope] : chosen.filter((other) => other !== scope))}
        />
      ))}
    </fieldset>
  );
}
