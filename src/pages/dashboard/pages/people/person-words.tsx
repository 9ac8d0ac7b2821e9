import type { Person } from "../../../../client/generated/api.ts";
import { Status } from "../../ui/status.tsx";

/** The role for the account, or those in single projects. */
export function rolesOf({ role, projects }: Pick<Person, "role" | "projects">): string {
  if (role !== null || projects === "all") return role ?? "–";
  return [...new Set(projects.map((project) => project.role))].join(", ");
}

const METHODS: Readonly<Record<string, string>> = {
  passkey: "passkey",
  oidc: "single sign-on",
  header: "proxy",
  email: "e-mail link",
  key: "API key",
  link: "login link",
  invitation: "invitation",
};

/** A way to log in, in words. */
export function methodName(method: string): string {
  return METHODS[method] ?? method;
}

const TONES = { active: "good", invited: "busy", disabled: "idle" } as const;

/** The state of a person. */
export function PersonState({ of: { status } }: { of: Pick<Person, "status"> }) {
  return <Status state={status} tone={TONES[status]} />;
}
