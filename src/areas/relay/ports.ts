/** The accounts' platform keys, kept by whoever keeps accounts. */
export interface SigningKeys {
  /** The newest platform key of an account. */
  signingKey(accountRef: number): string;
}
