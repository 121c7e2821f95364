/** What the hosts of these tests provide. */
import { RemoteService } from "@bezel/core/service"
import { Schema } from "effect"

export class Ledger extends RemoteService.make("test.ledger")({
  state: { ledger: Schema.Struct({ entries: Schema.Array(Schema.String), text: Schema.String }) },
  methods: {
    /** Not idempotent: each application adds one entry. */
    add: { payload: Schema.String, success: Schema.Int },
    wait: {},
    read: { success: Schema.Struct({ entries: Schema.Array(Schema.String), text: Schema.String }) }
  }
}) {}
