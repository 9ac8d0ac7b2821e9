/** Maximum characters of a version. */
export const SEMVER_LENGTH_MAX = 256;

/** A parsed version. */
export interface Version {
  /** Major, minor and patch as digits. */
  readonly numbers: readonly string[];
  /** Empty for a release. */
  readonly prerelease: readonly string[];
}

const DIGITS = /^\d+$/;
/** A number without leading zeros. */
const NUMBER = /^(0|[1-9]\d*)$/;
const NAME = /^[0-9A-Za-z-]+$/;

/** Parses a SemVer 2 version. A leading `v` or `V` and one or two parts (`2.3` is 2.3.0) are accepted. Returns null if invalid. */
export function parseVersion(text: string): Version | null {
  if (text.length > SEMVER_LENGTH_MAX) return null;
  const trimmed = text.trim();
  const [version, build] = cut(trimmed, "+");
  const [core, before] = cut(version, "-");
  const numbers = (/^v/i.test(core) ? core.slice(1) : core).split(".");
  // Blanks around are for complete versions alone, as in flagd.
  if (numbers.length < 3 && trimmed !== text) return null;
  if (numbers.length > 3 || !numbers.every((part) => NUMBER.test(part))) return null;
  const prerelease = before?.split(".") ?? [];
  if (!prerelease.every((name) => NAME.test(name) && (NUMBER.test(name) || !DIGITS.test(name)))) return null;
  if (build?.split(".").every((name) => NAME.test(name)) === false) return null;
  return { numbers: [...numbers, "0", "0"].slice(0, 3), prerelease };
}

/** Splits a text at the first mark; the second part is undefined without one. */
function cut(text: string, mark: string): [before: string, after: string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** Compares two versions by SemVer 2 precedence: negative, 0 or positive. Build metadata is ignored. */
export function compareVersions(left: Version, right: Version): number {
  for (let part = 0; part < 3; part += 1) {
    const order = compareDigits(left.numbers[part] as string, right.numbers[part] as string);
    if (order !== 0) return order;
  }
  const [leftNames, rightNames] = [left.prerelease, right.prerelease];
  // A release has a higher precedence than its prereleases.
  if (leftNames.length === 0 || rightNames.length === 0) return rightNames.length - leftNames.length;
  const shared = Math.min(leftNames.length, rightNames.length);
  for (let at = 0; at < shared; at += 1) {
    const order = compareNames(leftNames[at] as string, rightNames[at] as string);
    if (order !== 0) return order;
  }
  return leftNames.length - rightNames.length;
}

/** Compares numbers of any length without leading zeros. */
function compareDigits(left: string, right: string): number {
  return left.length - right.length || compareTexts(left, right);
}

/** Numeric identifiers have a lower precedence than alphanumeric ones. */
function compareNames(left: string, right: string): number {
  const isNumber = DIGITS.test(left);
  if (isNumber !== DIGITS.test(right)) return isNumber ? -1 : 1;
  return isNumber ? compareDigits(left, right) : compareTexts(left, right);
}

/** Compares by code unit, which is the byte order for ASCII. */
function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
