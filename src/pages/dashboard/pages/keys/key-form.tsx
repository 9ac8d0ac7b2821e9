import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { may, projects, session } from "../../core/session.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, Choice, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { BEARER_PREFIX, LimitFields, limitsOf, wordsOf } from "./key-limits.tsx";

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
  ["all", "Everything"],
  ["read", "Read only"],
  ["browser", "Browser key"],
  ["some", "Chosen scopes"],
];

/** Creates a key. `onCreated` receives the secret, which is not shown again. */
export function KeyForm({
  onCreated,
  onClose,
}: {
  onCreated: (secret: string) => void;
  onClose: () => void;
}) {
  const [access, setAccess] = useState<Access>(may("*") ? "all" : "read");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [prefix, setPrefix] = useState(BEARER_PREFIX);
  const isBearer = prefix.trim() === BEARER_PREFIX;
  const granted = { all: ["*"], read: READ_ONLY.filter(may), browser: BROWSER.filter(may), some: chosen }[
    access
  ];
  const submit = async (data: FormData): Promise<void> => {
    const until = textOf(data, "expires_at");
    const body = {
      name: textOf(data, "name") ?? "",
      prefix: textOf(data, "prefix") ?? BEARER_PREFIX,
      scopes: isBearer ? granted : wordsOf(textOf(data, "scopes") ?? ""),
      ...limitsOf(data, isBearer),
      ...(until === undefined ? {} : { expires_at: new Date(until).toISOString() }),
    };
    const project = textOf(data, "project");
    const made =
      project === undefined
        ? await call("keys.create", { body })
        : await call("projects.keys.create", { params: { id: project }, body });
    onCreated(made.secret);
  };
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form
        submit="Create key"
        disabled={isBearer && granted.length === 0}
        onSubmit={submit}
        onCancel={onClose}
      >
        <TextField name="name" label="Name" placeholder="Warehouse" required />
        <TextField
          name="prefix"
          label="Prefix"
          value={BEARER_PREFIX}
          mono
          required
          onInput={setPrefix}
          hint="Keys with sm call this API. Any other prefix is for keys that you issue to your customers."
        />
        {isBearer ? (
          <AccessFields access={access} onAccess={setAccess} chosen={chosen} onChosen={setChosen} />
        ) : (
          <TextField
            name="scopes"
            label="Scopes"
            mono
            required
            placeholder="orders:read, orders:items:*"
            hint="Scopes of your API; verification compares them with the scopes that a request requires."
          />
        )}
        <PlaceFields />
        <LimitFields isBearer={isBearer} />
      </Form>
    </Dialog>
  );
}

/** The key's project and expiry. */
function PlaceFields() {
  return (
    <div class="two">
      <SelectField
        name="project"
        label="Project"
        options={[
          ...(session.value?.project_id === null ? [["", "All projects"] as const] : []),
          ...projects.value.map(({ id, name }) => [id, name] as const),
        ]}
      />
      <TextField name="expires_at" label="Expires" type="datetime-local" />
    </div>
  );
}

function AccessFields(props: {
  access: Access;
  onAccess: (access: Access) => void;
  chosen: readonly string[];
  onChosen: (chosen: readonly string[]) => void;
}) {
  const { access, onAccess, chosen, onChosen } = props;
  return (
    <>
      <div class="field">
        <span class="small">
          <strong>Access</strong>
        </span>
        <Choice
          label="Access"
          options={ACCESS.filter(([one]) => one !== "all" || may("*"))}
          value={access}
          onChange={onAccess}
        />
        {access === "browser" ? (
          <small class="quiet">
            For web pages and apps: the key can evaluate flags through OpenFeature and nothing else.
          </small>
        ) : null}
      </div>
      {access === "some" ? <ScopeBoxes chosen={chosen} onChange={onChosen} /> : null}
    </>
  );
}

function ScopeBoxes(props: { chosen: readonly string[]; onChange: (chosen: readonly string[]) => void }) {
  const { chosen, onChange } = props;
  return (
    <fieldset class="scopes">
      <legend class="unseen">Scopes</legend>
      {ALL.filter(may).map((scope) => (
        <CheckField
          key={scope}
          label={<code>{scope}</code>}
          checked={chosen.includes(scope)}
          onChange={(on) => onChange(on ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
        />
      ))}
    </fieldset>
  );
}
