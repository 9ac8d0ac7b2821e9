import type { LedgerPage } from "../../kernel/ledger-entry.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A balance of an account, as its endpoints answer it. */
export interface OwnBalanceView {
  readonly balance: number;
  readonly user_id: string;
}

/** The accounts' own balances, kept by whoever keeps accounts. */
export interface OwnBalances {
  read(accountRef: number): OwnBalanceView;
  /** @throws ApiError `insufficient_balance` */
  deduct(tx: Tx, accountRef: number, amount: number, requestId: string): OwnBalanceView;
  /** @throws ApiError `invalid_request` */
  refill(tx: Tx, accountRef: number, amount: number, requestId: string): OwnBalanceView;
  history(accountRef: number, limit: number, cursor: string | undefined): LedgerPage;
}
