package workspace

// NoSwap makes r behave as on a system that cannot exchange names.
func NoSwap(r *Root) { r.noSwap = true }

// StageName is the name of p's staged file in the operation id.
var StageName = stageName

// ComparePaths is the order in which steps are made.
var ComparePaths = comparePaths

// CanSwap says whether the system can exchange names at all.
const CanSwap = canSwap
