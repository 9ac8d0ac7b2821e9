/** What an operation has changed, as passed to the audit log, which removes the secrets in it. */
export interface AuditChange {
  /** One line for people. */
  readonly summary: string;
  readonly target: AuditTarget;
  /** The fields as they were; null for what has just been made. */
  readonly before: Fields | null;
  /** The fields as they are; null for what is gone. */
  readonly after: Fields | null;
  /** The id of the project that it belongs to: the caller's where the operation changes that, unless said otherwise. */
  readonly projectId?: string | null;
  /** Whether each side may have as many bytes as the largest definition, so that an earlier one can be restored. */
  readonly isDefinition?: boolean;
  /** The account that was acted on, where that is not the caller's. */
  readonly subjectRef?: number;
}

/** What was changed. */
export interface AuditTarget {
  readonly type: string;
  readonly id: string;
}

/** Fields of a thing, by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** A change of something that was there before; null when no field differs. */
export function changed(change: AuditChange): AuditChange | null {
  const { before, after } = change;
  return before !== null && after !== null && Object.keys(difference(before, after)).length === 0
    ? null
    : change;
}

/** The fields of `one` that differ from those of `other`; a field that only `other` has is null. */
export function difference(one: Fields, other: Fields): Fields {
  const names = Object.keys({ ...one, ...other });
  const differing = names.filter((name) => !Bun.deepEquals(one[name] ?? null, other[name] ?? null));
  return Object.fromEntries(differing.map((name) => [name, one[name] ?? null]));
}
