import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/browser";
import { call } from "./api.ts";

/** The library is loaded by the first passkey, so that the console starts faster. */
function library() {
  return import("@simplewebauthn/browser");
}

/** An IPv4 or IPv6 address as the host of a page. */
const ADDRESS = /^\d+(\.\d+){3}$|^\[/;
const LOOPBACK = /^127\.|^\[::1\]$/;

/** Why passkeys do not work at the address of this page; null if they do. */
export function passkeyProblem(): string | null {
  if (ADDRESS.test(location.hostname))
    return "Browsers permit no passkeys at an IP address. Open this server at its host name.";
  if (!isSecureContext)
    return "Browsers permit passkeys only over HTTPS. Open this server at its https:// address.";
  return "PublicKeyCredential" in window ? null : "This browser does not support passkeys. Use another one.";
}

/** This page at `localhost`, where passkeys work; null unless it is open at a loopback address. */
export function localhostUrl(): string | null {
  if (!LOOPBACK.test(location.hostname)) return null;
  const url = new URL(location.href);
  url.hostname = "localhost";
  return url.href;
}

/** What is offered besides a button: passkeys among the suggestions of a field. */
interface Use {
  readonly isAutofill: boolean;
}

/**
 * Lets the user choose a passkey for a login. Resolves to what `POST /v1/session/passkey` takes.
 * @throws Failure, Error with a message for the user
 */
export async function usePasskey({ isAutofill }: Use): Promise<object> {
  const [{ startAuthentication }, { options }] = await Promise.all([
    library(),
    call("session.passkey.options", {}),
  ]);
  const optionsJSON = options as object as PublicKeyCredentialRequestOptionsJSON;
  return explained(() => startAuthentication({ optionsJSON, useBrowserAutofill: isAutofill }));
}

/** Creates a passkey. Resolves to its registration. @throws Error with a message for the user */
export async function createPasskey(options: object) {
  const { startRegistration } = await library();
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON;
  const credential = await explained(() => startRegistration({ optionsJSON }));
  return { ...credential, response: { ...credential.response } };
}

/** Whether the browser suggests passkeys in fields. */
export async function hasAutofill(): Promise<boolean> {
  return (await library()).browserSupportsWebAuthnAutofill();
}

/** Ends a request for a passkey that is open. */
export async function cancelPasskey(): Promise<void> {
  (await library()).WebAuthnAbortService.cancelCeremony();
}

/** What the browser reports, by the name of the error. */
const PROBLEMS: Readonly<Record<string, string>> = {
  NotAllowedError: "No passkey was used: the request was cancelled, or took too long. Try again.",
  AbortError: "The request for a passkey was cancelled.",
  InvalidStateError: "This device has a passkey of yours already. Use it to log in.",
  SecurityError: "Passkeys belong to another address of this server. Open the console at its public address.",
};

async function explained<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    throw PROBLEMS[name] === undefined ? error : new Error(PROBLEMS[name], { cause: error });
  }
}
