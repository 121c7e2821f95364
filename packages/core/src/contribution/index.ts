export type {
  ContributionEntry,
  ContributionFault,
  ContributionRegistration,
  Contributions,
  ContributionsOptions,
  Contributor
} from "./contributions.ts"
export * as Contribution from "./contributions.ts"
