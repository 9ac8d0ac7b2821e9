import type { Answers, QueryOf } from "../api.ts";
import type { Receipt } from "../generated/api.ts";
import type { RequestOptions } from "../options.ts";
import { NotaryMethods, ReceiptsMethods } from "./methods.ts";

/** A chain of signed receipts. */
export class Notary extends NotaryMethods {
  readonly receipts = new Receipts(this.api);

  /** Returns a signed checkpoint over all receipts. Store its `note`: later it proves that the chain only grew. */
  checkpoint(options?: RequestOptions): Answers<"witness.checkpoint"> {
    return this.api.call("witness.checkpoint", { query: { format: "json" } }, options);
  }

  /** Iterates over the receipts of the chain, oldest first. Pages of up to 8 MiB are requested as needed. */
  async *export(
    { from = 1, ...query }: QueryOf<"witness.export"> = {},
    options: RequestOptions = {},
  ): AsyncGenerator<Receipt, void, undefined> {
    for (let next: number | null = from; next !== null; ) {
      const request = this.api.request("witness.export", { query: { ...query, from: next } }, options);
      const { body, headers } = await this.api.transport.send(request, options);
      for (const line of String(body).split("\n")) if (line !== "") yield JSON.parse(line) as Receipt;
      const cursor = headers.get("x-next-cursor");
      next = cursor === null ? null : Number(cursor);
    }
  }
}

/** The receipts of the chain of the project. */
export class Receipts extends ReceiptsMethods {
  /** Returns a receipt with the proof that it is in the chain, for `verifyBundle` of `ninefold/verify`. */
  bundle(sequenceId: string | number, options?: RequestOptions): Answers<"witness.bundle"> {
    const params = { sequence_id: String(sequenceId) };
    return this.api.call("witness.bundle", { params, query: {} }, options);
  }
}
