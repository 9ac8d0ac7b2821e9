import { type Role, roleOfGroups } from "../../../kernel/callers/role.ts";
import { isEmail } from "../../../kernel/mail/address.ts";

/** Longest name of a person. */
const NAME_LENGTH_MAX = 100;

/** Claims of an ID token, or of UserInfo. */
export type Claims = Readonly<Record<string, unknown>>;

/** What a login needs of an identity's claims. */
export interface Needs {
  readonly groups: boolean;
  readonly verified: boolean;
  readonly groupsClaim: string;
}

/** Whether UserInfo can have what the ID token lacks. */
export function lacksClaims(claims: Claims, { groups, verified, groupsClaim }: Needs): boolean {
  return (
    claims["email"] === undefined ||
    (verified && claims["email_verified"] === undefined) ||
    (groups && claims[groupsClaim] === undefined)
  );
}

/** Claims of the ID token, with those of UserInfo that it lacks. Whether an address is verified counts for that address alone. */
export function withUserInfo(claims: Claims, info: Claims): Claims {
  const ofInfo = info["email_verified"];
  const { email, email_verified: ofToken } = claims;
  const verified = email === undefined ? ofInfo : (ofToken ?? (email === info["email"] ? ofInfo : undefined));
  return { ...info, ...claims, email_verified: verified };
}

/** The verified address; null without one. */
export function verifiedEmail(claims: Claims, trusted: boolean): string | null {
  const { email, email_verified: verified } = claims;
  const isVerified = verified === true || verified === "true" || (trusted && verified === undefined);
  return isVerified && typeof email === "string" && isEmail(email) ? email : null;
}

/** The name of a person; null without one. */
export function nameOf({ name }: Claims): string | null {
  const text = typeof name === "string" ? name.trim().slice(0, NAME_LENGTH_MAX).toWellFormed() : "";
  return text === "" ? null : text;
}

/** The groups of a person; null without the claim. */
export function groupsOf(claims: Claims, claim: string): ReadonlySet<string> | null {
  const groups = claims[claim];
  if (typeof groups === "string") return new Set([groups]);
  return Array.isArray(groups) ? new Set(groups.filter((group) => typeof group === "string")) : null;
}

/** The rules of a provider. */
export interface Rules {
  readonly allowedDomains: readonly string[];
  readonly allowedGroups: readonly string[];
  readonly roles: ReadonlyMap<string, Role>;
}

/** What the rules say about a login: the role that the provider gives, null for none; or why it is rejected. */
export type Verdict =
  | { readonly role: Role | null; readonly rejection: null }
  | { readonly role: null; readonly rejection: string };

/** Applies the rules of a provider, which count at every login. */
export function judge(
  { allowedDomains, allowedGroups, roles }: Rules,
  email: string | null,
  groups: ReadonlySet<string> | null,
): Verdict {
  const domain = email?.slice(email.lastIndexOf("@") + 1).toLowerCase();
  if (allowedDomains.length > 0 && (domain === undefined || !allowedDomains.includes(domain)))
    return rejection(email === null ? "the address is not verified" : "the domain is not allowed");
  if (allowedGroups.length + roles.size > 0 && groups === null) return rejection("the groups are missing");
  if (allowedGroups.length > 0 && !allowedGroups.some((group) => groups?.has(group)))
    return rejection("no group is allowed");
  if (roles.size === 0) return { role: null, rejection: null };
  const role = roleOfGroups(roles, groups ?? []);
  return role === null ? rejection("no group has a role") : { role, rejection: null };
}

function rejection(reason: string): Verdict {
  return { role: null, rejection: reason };
}
