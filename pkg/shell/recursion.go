package shell

import "mvdan.cc/sh/v3/syntax"

// canEndRecursion reports whether a function's body contains a condition, so that its recursion may end.
func canEndRecursion(body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.IfClause:
			found = found || len(n.Cond) > 0 && !isAlwaysTrue(n.Cond)
		case *syntax.WhileClause:
			found = found || !isAlwaysTrue(n.Cond)
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.AndStmt || n.Op == syntax.OrStmt) && !isAlwaysTrue([]*syntax.Stmt{n.X})
		case *syntax.ForClause, *syntax.CaseClause:
			found = true
		case *syntax.CallExpr:
			found = found || isCall(n, "return") || isCall(n, "exit") || isCall(n, "exec")
		}
		return !found
	})
	return found
}

// certainlyCallsFunction reports whether a function's body certainly calls the function of the given name.
func certainlyCallsFunction(functionName string, stmt *syntax.Stmt) bool {
	if stmt == nil {
		return false
	}
	all := func(stmts []*syntax.Stmt) bool {
		for _, st := range stmts {
			if certainlyCallsFunction(functionName, st) {
				return true
			}
			if canEndRecursion(st) {
				return false // the function may have returned
			}
		}
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return isCall(cmd, functionName)
	case *syntax.Block:
		return all(cmd.Stmts)
	case *syntax.Subshell:
		return all(cmd.Stmts)
	case *syntax.TimeClause:
		return certainlyCallsFunction(functionName, cmd.Stmt)
	case *syntax.CoprocClause:
		return certainlyCallsFunction(functionName, cmd.Stmt)
	case *syntax.BinaryCmd:
		again := certainlyCallsFunction(functionName, cmd.X)
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll || cmd.Op == syntax.AndStmt && isAlwaysTrue([]*syntax.Stmt{cmd.X}) {
			again = again || certainlyCallsFunction(functionName, cmd.Y)
		}
		return again
	case *syntax.IfClause:
		return isAlwaysTrue(cmd.Cond) && all(cmd.Then) || cmd.Else != nil && all(cmd.Then) && all(cmd.Else.Then)
	case *syntax.WhileClause:
		return !cmd.Until && isAlwaysTrue(cmd.Cond) && all(cmd.Do)
	case *syntax.ForClause:
		return all(cmd.Do)
	}
	return false
}

// isForkBomb reports whether a function's body calls the function in the background, or several times in one pipe.
func isForkBomb(name string, body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && countCalls(name, n) > 0
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && countCalls(name, n) > 1
		}
		return !found
	})
	return found
}

// countCalls counts the calls of a function in a syntax node.
func countCalls(name string, node syntax.Node) int {
	count := 0
	syntax.Walk(node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && isCall(call, name) {
			count++
		}
		return true
	})
	return count
}

// isAlwaysTrue reports whether a list of commands always succeeds, so that it is no real condition.
func isAlwaysTrue(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 || stmts[0].Negated {
		return false
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch call.Args[0].Lit() {
	case "true", ":":
		return true
	case "[", "test": // true with one nonempty literal word, as in [ 1 ]
		return len(call.Args) == 3 && call.Args[1].Lit() != "" && call.Args[2].Lit() == "]" || len(call.Args) == 2 && call.Args[1].Lit() != ""
	}
	return false
}

// isCall reports whether a command calls a given program or function.
func isCall(call *syntax.CallExpr, name string) bool {
	return len(call.Args) > 0 && call.Args[0].Lit() == name
}
