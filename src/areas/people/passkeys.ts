import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { loginRejected } from "../../kernel/callers/caller.ts";
import { isAddress, isLoopbackName } from "../../kernel/data/addresses.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { Challenges } from "./challenges.ts";
import type { PeopleDirectory, Person } from "./directory.ts";
import { CHALLENGE_MS, PASSKEYS_MAX } from "./domain.ts";
import type { Passkey } from "./schema.ts";
import type { PasskeyRow } from "./store.ts";

/** COSE numbers of the algorithms of passkeys: ES256, EdDSA, RS256. */
const ALGORITHMS = [-7, -8, -257];
/** The name of this relying party, which authenticators show. */
const RELYING_PARTY_NAME = "Ninefold";

/** A verified registration, which is not stored yet. */
export interface VerifiedPasskey {
  readonly credentialId: string;
  readonly publicKey: Uint8Array;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly relyingParty: string;
}

/** A verified login by a passkey. */
export interface VerifiedLogin {
  readonly passkey: PasskeyRow;
  readonly counter: number;
}

/** The library is loaded by the first passkey: a server without people starts and idles without it. */
function library() {
  return import("@simplewebauthn/server");
}

/** Registers passkeys and verifies logins by them. */
export class Passkeys {
  private readonly challenges: Challenges;

  constructor(
    private readonly kernel: Pick<Kernel, "clock" | "ids" | "vault">,
    private readonly directory: PeopleDirectory,
  ) {
    this.challenges = new Challenges(kernel);
  }

  /** Options of a login by any passkey of this server. @throws ApiError `invalid_request` */
  loginOptions(origin: string): PublicKeyCredentialRequestOptionsJSON {
    const rpId = relyingPartyOf(origin);
    return {
      challenge: this.challenges.create("login"),
      rpId,
      timeout: CHALLENGE_MS,
      userVerification: "required",
    };
  }

  /** Options of a registration by a person. @throws ApiError `invalid_request` */
  registrationOptions(person: Person, origin: string): PublicKeyCredentialCreationOptionsJSON {
    const id = relyingPartyOf(origin);
    const known = this.directory.store.passkeysOf(person.ref);
    return {
      rp: { id, name: RELYING_PARTY_NAME },
      user: {
        id: Buffer.from(person.id).toString("base64url"),
        name: person.email,
        displayName: person.name ?? person.email,
      },
      challenge: this.challenges.create(`registration:${person.id}`),
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: "public-key" as const })),
      timeout: CHALLENGE_MS,
      excludeCredentials: known
        .filter(({ relying_party }) => relying_party === id)
        .map(({ credential_id, transports }) => ({
          id: credential_id,
          type: "public-key" as const,
          transports: JSON.parse(transports) as AuthenticatorTransport[],
        })),
      authenticatorSelection: {
        residentKey: "required",
        requireResidentKey: true,
        userVerification: "required",
      },
      attestation: "none",
    };
  }

  /** Verifies a registration. @throws ApiError `validation_error`, with the same message for every reason. */
  async verifyRegistration(
    person: Person,
    response: RegistrationResponseJSON,
    origin: string,
  ): Promise<VerifiedPasskey> {
    const relyingParty = relyingPartyOf(origin);
    const { verifyRegistrationResponse } = await library();
    const purpose = `registration:${person.id}` as const;
    try {
      const { verified, registrationInfo } = await verifyRegistrationResponse({
        response,
        expectedChallenge: (challenge) => this.challenges.use(challenge, purpose),
        expectedOrigin: origin,
        expectedRPID: relyingParty,
        requireUserVerification: true,
        supportedAlgorithmIDs: ALGORITHMS,
      });
      if (!verified) throw badRegistration();
      const { id, publicKey, counter, transports = [] } = registrationInfo.credential;
      return { credentialId: id, publicKey, counter, transports, relyingParty };
    } catch {
      throw badRegistration();
    }
  }

  /** Verifies a login. @throws ApiError `unauthorized`, with the same message for every reason. */
  async verifyLogin(response: AuthenticationResponseJSON, origin: string): Promise<VerifiedLogin> {
    const relyingParty = relyingPartyOf(origin);
    const passkey = this.directory.store.passkeyWithCredential(response.id);
    const { verifyAuthenticationResponse } = await library();
    // Of an unknown passkey nothing can be verified. Nobody guesses a credential id, so the time says nothing.
    if (passkey === null || passkey.relying_party !== relyingParty) throw loginRejected();
    try {
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response,
        expectedChallenge: (challenge) => this.challenges.use(challenge, "login"),
        expectedOrigin: origin,
        expectedRPID: relyingParty,
        credential: {
          id: passkey.credential_id,
          publicKey: new Uint8Array(passkey.public_key),
          counter: passkey.counter,
        },
        requireUserVerification: true,
      });
      if (verified) return { passkey, counter: authenticationInfo.newCounter };
    } catch {
      // The library throws for whatever it rejects.
    }
    throw this.rejected(passkey, "an invalid response of a passkey");
  }

  /**
   * Records the use of a passkey in the unit of work of its login. Returns the person.
   * @throws ApiError `unauthorized` if the passkey is gone, or was used since it was verified.
   */
  use(tx: Tx, { passkey, counter }: VerifiedLogin): Person {
    const { store } = this.directory;
    const now = store.passkeyWithCredential(passkey.credential_id);
    const person = now && this.directory.person(now.person_ref);
    const isRepeated = now === null || ((counter > 0 || now.counter > 0) && counter <= now.counter);
    if (person === null) throw loginRejected();
    if (isRepeated) throw this.rejected(passkey, "a repeated response of a passkey");
    store.setPasskeyUse(tx, counter, tx.now, now.ref);
    return person;
  }

  /** The rejection of a login by a known passkey, which the log of its person's account has. */
  private rejected({ person_ref }: PasskeyRow, reason: string): Error {
    const person = this.directory.person(person_ref);
    if (person === null) return loginRejected();
    const { id, email, accountRef } = person;
    return loginRejected({ id, email, accountRef, reason });
  }

  /**
   * Stores a passkey.
   * @throws ApiError `conflict` for one that is known already, or above {@link PASSKEYS_MAX}.
   */
  add(tx: Tx, person: Person, verified: VerifiedPasskey, name?: string): PasskeyRow {
    const { store } = this.directory;
    const count = store.passkeysOf(person.ref).length;
    if (count >= PASSKEYS_MAX)
      throw new ApiError("conflict", `You have ${PASSKEYS_MAX} passkeys. Remove one first.`);
    if (store.passkeyWithCredential(verified.credentialId) !== null)
      throw new ApiError("conflict", "This passkey is registered already. Use it to log in.");
    store.insertPasskey(tx, {
      id: `pky_${this.kernel.ids.base62(20)}`,
      person_ref: person.ref,
      credential_id: verified.credentialId,
      public_key: verified.publicKey,
      counter: verified.counter,
      transports: JSON.stringify(verified.transports),
      relying_party: verified.relyingParty,
      name: name ?? `Passkey ${count + 1}`,
      created_at: tx.now,
    });
    this.directory.changed(tx, person.ref);
    const row = store.passkeyWithCredential(verified.credentialId);
    if (row === null) throw new Error("a passkey was not stored");
    return row;
  }
}

/** A passkey as the API shows it. `origin`: the server's own, whose passkeys work. */
export function passkeyView(row: PasskeyRow, origin: string): Passkey {
  return {
    passkey_id: row.id,
    name: row.name,
    relying_party: row.relying_party,
    usable: URL.parse(origin)?.hostname === row.relying_party,
    created_at: isoTime(row.created_at),
    last_used_at: isoTimeOrNull(row.used_at),
  };
}

/**
 * The relying party of passkeys: the host of the server's origin.
 * @throws ApiError `invalid_request` where browsers permit no passkeys.
 */
function relyingPartyOf(origin: string): string {
  const { protocol, hostname } = new URL(origin);
  const isAllowed =
    (protocol === "https:" || isLoopbackName(hostname)) && !isAddress(hostname.replace(/^\[|\]$/g, ""));
  if (isAllowed) return hostname;
  throw new ApiError(
    "invalid_request",
    "Passkeys need a host name with HTTPS, or localhost. Open the server at such an address, and set public_url to it.",
  );
}

function badRegistration(): ApiError {
  return invalidField(
    "credential",
    "is not a valid registration of a passkey for this page. Request new options for each attempt",
  );
}
