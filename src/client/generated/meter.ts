// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** What `GET /v1/meter/{meterId}/balance` answers. */
export interface MeterBalance {
  balance: number;
  meter_id: string;
}

/** The body of `POST /v1/meter/{meterId}/deduct`. */
export interface AmountBody {
  /** Credits; 1 or more. */
  amount: number;
}

/** What `GET /v1/meter/{meterId}/history` answers. */
export interface LedgerPage {
  entries: LedgerEntry[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/meter/{meterId}/history` answers, `entries`, `[]`. */
export interface LedgerEntry {
  /** Rises with every entry. */
  sequence: number;
  kind: "deduct" | "refill" | "reset" | "grant" | "charge";
  /** What the balance changed by, signed. */
  amount: number;
  /** The balance after this change. */
  balance_after: number;
  /** RFC 3339, UTC. Of a charge: the hour it belongs to. */
  at: string;
  /** The request that caused it. */
  request_id: string | null;
  /** Of a charge: what was paid for. */
  operation?: string;
  /** Of a charge: how many requests it sums up. */
  count?: number;
}

/** What `GET /v1/meter/balance` answers. */
export interface OwnBalance {
  balance: number;
  user_id: string;
}

/** The body of `POST /v1/meter/{meterId}/reset`. */
export interface ResetBody {
  balance: number;
}
