/** What a connection is told when it asks for something that is not there for it. */
import { ServiceError } from "../service/index.ts"
import { protocolVersion } from "./wire.ts"

export const unknownService = (service: string): ServiceError =>
  new ServiceError({ code: "unknown_service", message: `This host has no service "${service.slice(0, 200)}".` })

export const unknownMember = (at: { readonly service: string; readonly member: string }, kind: string): ServiceError =>
  new ServiceError({
    code: "unknown_member",
    message: `Service "${at.service}" has no ${kind} "${at.member.slice(0, 200)}".`
  })

export const notAttached = (session: string): ServiceError =>
  new ServiceError({
    code: "unauthorized",
    message: `This connection is not attached to session "${session.slice(0, 200)}".`
  })

export const overloaded = (limit: string): ServiceError =>
  new ServiceError({
    code: "overloaded",
    message: `This connection has ${limit}, which is its limit; wait for some of them to end.`
  })

export const otherProtocol = (theirs: number): ServiceError =>
  new ServiceError({
    code: "invalid_arguments",
    message:
      `This host speaks version ${protocolVersion} of the protocol and the client version ${theirs}; update the older one.`
  })

export const staleReference = (service: string): ServiceError =>
  new ServiceError({
    code: "stale_reference",
    message: `This reference to "${service}" has ended, or is not of this connection; ask its service for a new one.`
  })
