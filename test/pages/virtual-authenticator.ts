import type { CDPSession, Page } from "playwright-core";

/** A device that holds passkeys and whose user agrees to each use, as Chromium emulates it. */
export class VirtualAuthenticator {
  private constructor(
    private readonly session: CDPSession,
    private readonly authenticatorId: string,
  ) {}

  /** Connects a device to the browser of a page. */
  static async connect(page: Page): Promise<VirtualAuthenticator> {
    const session = await page.context().newCDPSession(page);
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return new VirtualAuthenticator(session, authenticatorId);
  }

  /** Whether the user is recognized: otherwise the device refuses each use. */
  async recognize(isUserVerified: boolean): Promise<void> {
    const { authenticatorId } = this;
    await this.session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  }

  /** Removes all passkeys from the device: from then on it is like another one. */
  async clear(): Promise<void> {
    const { authenticatorId } = this;
    await this.session.send("WebAuthn.clearCredentials", { authenticatorId });
  }

  /** Number of passkeys on the device. */
  async size(): Promise<number> {
    const { authenticatorId } = this;
    const { credentials } = await this.session.send("WebAuthn.getCredentials", { authenticatorId });
    return credentials.length;
  }
}
