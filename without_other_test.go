//go:build !linux

package main

func without() {}
