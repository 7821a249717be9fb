package confine

const (
	sysProcessVMReadv = 270
	sysSeccomp        = 277
)
