package confine

const (
	sysProcessVMReadv = 310
	sysSeccomp        = 317
)
