"""Honest PowerShell and cmd work: interactive administration, scripts, documentation examples.

Public corpora have hardly any honest Windows command outside one source, so that a model learns
"PowerShell means attack". This family says otherwise. Its malicious twins are in offense.py and in
the command family."""
from ..registry import add

GET = """Get-Process Get-Service Get-ChildItem Get-Content Get-Item Get-ItemProperty Get-Date Get-Help Get-Command Get-Module Get-Member Get-Alias
Get-Variable Get-Location Get-PSDrive Get-PSProvider Get-History Get-Host Get-Culture Get-UICulture Get-TimeZone Get-HotFix Get-ComputerInfo
Get-EventLog Get-WinEvent Get-Acl Get-Random Get-Unique Get-Verb Get-FileHash Get-ExecutionPolicy Get-Job Get-PSSession Get-CimInstance
Get-CimClass Get-CimSession Get-Counter Get-Disk Get-Volume Get-Partition Get-PhysicalDisk Get-NetAdapter Get-NetIPAddress Get-NetIPConfiguration
Get-NetRoute Get-NetTCPConnection Get-NetFirewallRule Get-DnsClientServerAddress Get-DnsClientCache Get-SmbShare Get-Printer Get-ScheduledTask Get-ScheduledTaskInfo
Get-WindowsFeature Get-WindowsOptionalFeature Get-Package Get-PackageProvider Get-PSRepository Get-InstalledModule Get-LocalUser Get-LocalGroup Get-LocalGroupMember
Get-ADUser Get-ADGroup Get-ADComputer Get-ADGroupMember Get-ADDomain Get-ADOrganizationalUnit Get-Mailbox Get-MailboxStatistics Get-VM Get-VMSwitch Get-VHD
Get-AzVM Get-AzResourceGroup Get-AzSubscription Get-AzStorageAccount Get-Clipboard Get-Error Get-FormatData Get-TypeData Get-TraceSource Get-Event
Get-EventSubscriber Get-PSBreakpoint Get-PSCallStack Get-PSReadLineOption Get-PSReadLineKeyHandler Get-PSSessionConfiguration Get-Runspace Get-Credential
Get-Transaction Get-AuthenticodeSignature Get-PfxCertificate Get-CmsMessage Get-WSManInstance Get-ControlPanelItem Get-ItemPropertyValue Get-Uptime Get-MarkdownOption
Get-PSSubsystem Get-ExperimentalFeature Get-DscResource Get-SecureRandom Get-BitsTransfer Get-WebBinding Get-Website Get-IISAppPool Get-MpComputerStatus Get-BitLockerVolume""".split()
DO = """New-Item Set-Item Clear-Item Copy-Item Move-Item Rename-Item Remove-Item Set-Content Add-Content Clear-Content Out-File Out-String Out-GridView Out-Host Out-Null
Tee-Object Export-Csv Import-Csv ConvertTo-Csv ConvertFrom-Csv ConvertTo-Json ConvertFrom-Json ConvertTo-Html ConvertTo-Xml Export-Clixml Import-Clixml Select-Xml Test-Json
Start-Process Stop-Process Wait-Process Debug-Process Start-Service Stop-Service Restart-Service Set-Service Suspend-Service Resume-Service New-Service
Start-Job Receive-Job Wait-Job Stop-Job Remove-Job Invoke-Command Enter-PSSession Exit-PSSession New-PSSession Remove-PSSession Connect-PSSession Disconnect-PSSession
Import-PSSession Export-PSSession Register-PSSessionConfiguration Set-PSSessionConfiguration Enable-PSRemoting Disable-PSRemoting Test-WSMan Set-WSManQuickConfig New-WSManSessionOption
Invoke-WSManAction Invoke-CimMethod New-CimInstance Set-CimInstance Remove-CimInstance New-CimSession Register-CimIndicationEvent
Invoke-RestMethod Invoke-WebRequest Invoke-Item Invoke-History Invoke-Expression Measure-Command Measure-Object Sort-Object Group-Object Select-Object Where-Object ForEach-Object
Compare-Object Select-String Split-Path Join-Path Resolve-Path Test-Path Convert-Path Push-Location Pop-Location Set-Location
Write-Host Write-Output Write-Verbose Write-Warning Write-Error Write-Debug Write-Information Write-Progress Read-Host
Import-Module Remove-Module New-Module Install-Module Update-Module Uninstall-Module Save-Module Find-Module Publish-Module New-ModuleManifest Test-ModuleManifest Export-ModuleMember
Install-Package Find-Package Uninstall-Package Register-PSRepository Set-PSRepository Install-PackageProvider Register-PackageSource Find-Script Install-Script
Set-ExecutionPolicy Set-StrictMode Set-PSDebug Set-PSBreakpoint Remove-PSBreakpoint Enable-PSBreakpoint Start-Transcript Stop-Transcript Trace-Command
Set-Alias New-Alias Export-Alias Import-Alias New-Variable Set-Variable Clear-Variable Remove-Variable New-Object Add-Type Add-Member New-TimeSpan New-Guid
Set-Acl Set-AuthenticodeSignature New-SelfSignedCertificate Import-Certificate Export-Certificate Unblock-File Protect-CmsMessage Unprotect-CmsMessage ConvertTo-SecureString ConvertFrom-SecureString
Register-ScheduledTask New-ScheduledTaskAction New-ScheduledTaskTrigger Unregister-ScheduledTask Enable-ScheduledTask Disable-ScheduledTask Start-ScheduledTask
New-NetFirewallRule Set-NetFirewallRule Test-NetConnection Test-Connection Resolve-DnsName Set-DnsClientServerAddress New-NetIPAddress Clear-DnsClientCache Set-NetAdapter Restart-NetAdapter
New-LocalUser Set-LocalUser Add-LocalGroupMember Remove-LocalGroupMember New-ADUser Set-ADUser Add-ADGroupMember Unlock-ADAccount Set-ADAccountPassword Enable-ADAccount Move-ADObject
Restart-Computer Stop-Computer Rename-Computer Add-Computer Checkpoint-Computer Set-TimeZone Set-Date Set-Clipboard Clear-RecycleBin Compress-Archive Expand-Archive
New-VM Start-VM Stop-VM Checkpoint-VM Install-WindowsFeature Enable-WindowsOptionalFeature Update-Help Save-Help Show-Command Show-Markdown Format-Table Format-List Format-Wide Format-Custom Format-Hex
Register-ObjectEvent Register-EngineEvent Unregister-Event New-Event Wait-Event Remove-Event Update-TypeData Update-FormatData Remove-TypeData New-PSDrive Remove-PSDrive Start-Sleep
Limit-EventLog New-EventLog Write-EventLog New-WinEvent Send-MailMessage Start-BitsTransfer Register-ArgumentCompleter Set-PSReadLineOption Set-PSReadLineKeyHandler Switch-Process Start-ThreadJob""".split()
PARAM = """-Path|‹wpath› -Path|‹wpath› -Path|‹wpath› -LiteralPath|‹wpath› -Destination|‹wpath› -Name|‹wname› -Name|‹wname› -Name|‹wname› -Filter|*.‹ext› -Include|*.‹ext› -Exclude|*.‹ext› -Recurse|
-Force| -Verbose| -WhatIf| -Confirm:$false| -ErrorAction|SilentlyContinue -ErrorAction|Stop -ComputerName|‹srv› -ComputerName|‹srv›,‹srv› -Credential|‹dom›\\‹user› -Credential|$cred -Session|$s
-First|‹n› -Last|‹n› -Property|‹prop› -Property|‹prop›,‹prop› -Descending| -Unique| -AsHashTable| -AutoSize| -GroupBy|‹prop› -ExpandProperty|‹prop› -Value|‹val› -Encoding|utf8 -Encoding|ascii
-NoTypeInformation| -Delimiter|";" -ClassName|‹cim› -Namespace|root/cimv2 -LogName|‹log› -MaxEvents|‹n› -Newest|‹n› -Id|‹n› -Scope|CurrentUser -Scope|LocalMachine -Scope|Global -ItemType|Directory -ItemType|File
-PassThru| -Wait| -AsJob| -ScriptBlock|{‹ps1›} -FilePath|‹wpath›.ps1 -ArgumentList|‹val› -Type|Container -Full| -Examples| -Online| -Parameter|‹prop› -Module|‹mod› -ListAvailable| -MinimumVersion|‹ver› -Repository|PSGallery
-Identity|‹user› -SearchBase|"OU=‹wname›,DC=‹dom›,DC=com" -Properties|* -Port|‹port› -Protocol|TCP -Action|Allow -Direction|Inbound -DisplayName|"‹wname›" -StartupType|Automatic -Status|Running -Uri|https://‹host›/‹seg›
-Method|Post -Body|($body|ConvertTo-Json) -Headers|$headers -OutFile|‹wpath›.‹ext› -ContentType|application/json -Minutes|‹n› -Seconds|‹n› -Days|‹n› -Minimum|1 -Maximum|‹n› -Average| -Sum| -Line| -Word| -Pattern|"‹word›" -CaseSensitive|
-Depth|‹n› -Compress| -Raw| -Tail|‹n› -Stream|* -Option|ReadOnly -Description|"‹word› ‹word›" -Visible| -Title|"‹word›" -Separator|", " -ForegroundColor|Green -Foreground|Yellow -InputObject|$‹v› -Force:$true| -NoNewline|""".split("\n")
PARAM = [p for line in PARAM for p in line.split(" -")]
PARAM = ["-" + p.lstrip("-") for p in PARAM if p]

POOL = {
    "wname": "spooler wuauserv BITS W32Time WinRM Dnscache explorer notepad code msedge outlook sqlserver Reports Backup Projects Archive build deploy Inventory Payroll AppPool Web01 Sales HR DemoTask Nightly MyModule MyFunction PSReadLine Pester Contoso Widget Server cache Logs Fonts DefaultProfile TestUser JDoe TeamShare LobbyPrinter VM-Dev01 vm-test Ethernet Wi-Fi".split(),
    "ext": "txt log csv json xml ps1 psm1 psd1 html docx xlsx config ini cs zip bak md".split(),
    "srv": "Server01 Server02 SRV-FILE DC01 localhost web-01 web02 sql01 PC-123 $env:COMPUTERNAME . build-agent-7 app01.corp.local S1 mail01".split(),
    "dom": "Contoso CORP Fabrikam EXAMPLE adatum northwind Domain01".split(),
    "user": "User01 jdoe administrator a.smith svc_build Pat mkeller admin01 test.user Guest kim".split(),
    "prop": "Name Length Status CPU Id DisplayName LastWriteTime Version Path StartTime Description FullName Size FreeSpace Handles WorkingSet ProcessName Count Extension MemberType Definition Parameters Value Message TimeCreated Level Department Title Enabled".split(),
    "cim": "Win32_OperatingSystem Win32_BIOS Win32_ComputerSystem Win32_LogicalDisk Win32_Process Win32_Service Win32_NetworkAdapterConfiguration Win32_Product Win32_UserAccount Win32_Share Win32_Processor Win32_PhysicalMemory CIM_DataFile Win32_Printer Win32_Environment".split(),
    "log": "System Application Security Setup 'Windows PowerShell' Microsoft-Windows-TaskScheduler/Operational ForwardedEvents Microsoft-Windows-Windows\\x20Defender/Operational".replace("\\x20", "_").split(),
    "mod": "Pester PSReadLine Az ActiveDirectory Hyper-V NetTCPIP PSScriptAnalyzer Microsoft.PowerShell.Utility ImportExcel dbatools BitsTransfer SqlServer PSDesiredStateConfiguration MyTools posh-git".split(),
    "ver": "1.0.0 2.1 5.4.0 7.2 3.0.1 0.9".split(),
    "port": "80 443 3389 5985 5986 1433 8080 22 25 53".split(),
    "host": "api.contoso.com www.powershellgallery.com learn.microsoft.com intranet.fabrikam.com httpbin.test status.adatum.io artifacts.corp.local localhost:8080 jsonplaceholder.test go.microsoft.com".split(),
    "seg": "v1/status api/items releases/latest docs feed.xml users/42 health builds download/tools.zip".split(),
    "word": "error warning test report hello value item user file failed started Sample Example data result connection timeout backup weekly finished".split(),
    "v": "a b x items list result proc files services data report user obj params splat numbers session job path row config".split(),
    "n": "1 2 3 5 7 10 15 20 30 50 60 100 365 1024".split(),
    "val": "'Hello' \"test\" 1 5 $true $false $null $a @(1,2,3) 'value' 10GB \"$name\" (Get-Date) $env:USERNAME \"Sample text\" 'C:\\Temp' @{Name='x';Value=1}".split(),
    "wroot": "C:\\Temp C:\\Scripts C:\\Users\\jdoe\\Documents D:\\Data C:\\Logs .\\ ..\\ $HOME $env:TEMP $PSScriptRoot C:\\inetpub\\wwwroot C:\\Windows\\Logs D:\\Backup \\\\Server01\\Share C:\\ProgramData\\App HKLM:\\Software\\MyCompany HKCU:\\Environment Env: Cert:\\CurrentUser\\My $PSHOME C:\\Test C:\\ps-test".split(),
    "wleaf": "test.txt file1 report.csv Logs data.json config.xml new folder1 scripts users.csv output.log archive backup MyModule settings.ini inventory sub1 file.bak names.txt services.html".replace(" new ", " new ").split(),
}


def pick(rng, name):
    if name == "wpath":
        r = pick(rng, "wroot")
        s = r if rng.random() < .15 else r.rstrip("\\") + "\\" + pick(rng, "wleaf")
        return '"%s"' % s if rng.random() < .3 else s
    if name == "ps1":
        return stage(rng, 1)
    return rng.choice(POOL[name])


def fill(s, rng):
    while "‹" in s:
        i = s.index("‹")
        j = s.index("›", i)
        s = s[:i] + pick(rng, s[i + 1:j]) + s[j + 1:]
    return s


def param(rng):
    k, _, v = rng.choice(PARAM).partition("|")
    return (k + " " + v).strip()


def stage(rng, k=None):
    c = rng.choice(GET if rng.random() < .55 else DO)
    k = rng.choice([0, 1, 1, 1, 2, 2, 3]) if k is None else k
    a = [param(rng) for _ in range(k)]
    if rng.random() < .3:
        a.insert(0, rng.choice(["‹wname›", "‹wpath›", "'‹word›'", "$‹v›", "*‹word›*"]))
    return " ".join([c] + a)


TAIL = ["Where-Object {$_.‹prop› -⟨eq|gt|like|match|ne⟩ ‹val›}", "Where-Object ‹prop› -eq ‹val›", "? {$_.‹prop› -like '*‹word›*'}", "Select-Object ‹prop›, ‹prop›", "Select-Object -First ‹n›",
        "Sort-Object ‹prop› -Descending", "Format-Table -AutoSize", "Format-List *", "Format-Table ‹prop›, ‹prop›", "ForEach-Object { $_.‹prop› }", "ForEach-Object {‹ps1›}", "Measure-Object -Property ‹prop› -Sum",
        "Export-Csv -Path ‹wpath› -NoTypeInformation", "Out-File ‹wpath›", "ConvertTo-Json -Depth ‹n›", "Group-Object ‹prop›", "Get-Member", "Out-GridView", "Stop-Process -WhatIf", "Out-Null", "select ‹prop›", "ft -auto", "% {$_.‹prop›}", "Set-Content ‹wpath›", "Select-String '‹word›'"]

SNIP = ["$‹v› = ‹ps1›", "$‹v› = @(‹n›, ‹n›, ‹n›)", "$‹v› = @{ ‹prop› = ‹val›; ‹prop› = ‹val› }", "foreach ($‹v› in $‹v›) { ‹ps1› }", "for ($i = 0; $i -lt ‹n›; $i++) { Write-Host $i }",
        "if (Test-Path ‹wpath›) { ‹ps1› } else { ‹ps1› }", "try { ‹ps1› } catch { Write-Error $_ } finally { ‹ps1› }", "function Get-‹wname› { param([string]$‹v›) ‹ps1› }", "switch ($‹v›) { ‹n› {'‹word›'} default {'‹word›'} }",
        "\"{0:N2}\" -f $‹v›.‹prop›", "[datetime]::Now.AddDays(-‹n›)", "[System.IO.Path]::GetFileName($‹v›)", "[math]::Round($‹v›, 2)", "$‹v›.‹prop›.Count", "$‹v› | ‹ps1›", "while ($true) { Start-Sleep ‹n›; break }",
        "$env:Path -split ';'", "$PSVersionTable", "$‹v› -replace '‹word›', '‹word›'", "'‹word›','‹word›' | ForEach-Object { $_.ToUpper() }", "Write-Host \"‹word› $‹v›\" -ForegroundColor Green", "help ‹cmdlet› -Examples", "(‹ps1›).‹prop›",
        "$‹v›Splat = @{\n    Path = ‹wpath›\n    ‹prop› = ‹val›\n}\n‹cmdlet› @‹v›Splat", "[xml]$‹v› = Get-Content ‹wpath›", "dir ‹wpath›", "cd ‹wpath›; ls", "cat ‹wpath› | more", "gci ‹wpath› -r | ? Length -gt 1MB", "gps | sort ws -desc | select -f ‹n›",
        "$s = New-PSSession -ComputerName ‹srv› -Credential ‹dom›\\‹user›\nInvoke-Command -Session $s {‹ps1›}", "Enter-PSSession ‹srv›", "# ‹word› ‹word›\n‹ps1›", "$cred = Get-Credential\n‹ps1› -Credential $cred", "pwsh -NoProfile -Command \"‹ps1›\"",
        "powershell -File ‹wpath›.ps1", "powershell.exe -ExecutionPolicy Bypass -File .\\build.ps1", "Import-Module ‹mod›; ‹ps1›", "Install-Module ‹mod› -Scope CurrentUser", "$job = Start-Job { ‹ps1› }; Receive-Job $job -Wait", "[enum]::GetValues([System.DayOfWeek])", "$b = [Text.Encoding]::UTF8.GetBytes('‹word›'); [Convert]::ToBase64String($b)"]

CMD = ["dir ‹wpath› /s", "type ‹wpath›", "copy ‹wpath› ‹wpath›", "xcopy ‹wpath› ‹wpath› /E /I", "robocopy ‹wpath› ‹wpath› /MIR", "ipconfig /all", "ipconfig /flushdns", "ping ‹srv›", "tracert ‹host›", "netstat -an | findstr :‹port›", "tasklist /fi \"imagename eq ‹wname›.exe\"",
       "taskkill /IM ‹wname›.exe /F", "sc query ‹wname›", "sc config ‹wname› start= auto", "net use Z: \\\\‹srv›\\Share", "net start ‹wname›", "net stop ‹wname›", "net user ‹user›", "schtasks /query /tn ‹wname›", "schtasks /run /tn ‹wname›", "reg query HKLM\\Software\\MyCompany /v ‹prop›", "systeminfo", "whoami /groups",
       "gpupdate /force", "gpresult /r", "sfc /scannow", "chkdsk D:", "dism /online /get-features", "icacls ‹wpath› /grant ‹user›:R", "attrib +r ‹wpath›", "set PATH=%PATH%;‹wpath›", "setx ‹v› ‹word›", "for %f in (*.‹ext›) do echo %f", "if exist ‹wpath› (echo yes) else (echo no)", "findstr /s /i \"‹word›\" *.‹ext›", "mklink /D ‹wpath› ‹wpath›",
       "certutil -hashfile ‹wpath› SHA256", "certutil -store my", "nslookup ‹host›", "route print", "where ‹wname›", "powercfg /batteryreport", "wmic os get Caption,Version", "wmic logicaldisk get size,freespace", "msiexec /i ‹wpath›.msi /qn", "bcdedit /enum", "fsutil volume diskfree c:", "wevtutil qe ‹log› /c:‹n› /f:text", "bitsadmin /list", "choco install ‹wname› -y", "winget install ‹wname›", "dotnet build -c Release", "msbuild ‹wname›.sln /p:Configuration=Release", "nuget restore", "vcpkg install zlib", "git config --global core.autocrlf true", "shutdown /r /t ‹n›", "cmdkey /list", "fc ‹wpath› ‹wpath›", "tree ‹wpath› /f", "assoc .‹ext›", "assign", "diskpart /s ‹wpath›", "netsh interface show interface", "netsh advfirewall show allprofiles", "netsh wlan show interfaces", "runas /user:‹dom›\\‹user› ‹wname›.exe", "rd /s /q build", "del /q ‹wpath›"]


def command(rng):
    x = rng.random()
    if x < .16:
        s = fill(rng.choice(CMD), rng)
    elif x < .5:
        s = stage(rng)
        while rng.random() < .45:
            s += " | " + rng.choice(TAIL)
    else:
        n = rng.choice([1, 1, 2, 2, 3, 4, 6])
        parts = []
        for _ in range(n):
            t = rng.choice(SNIP) if rng.random() < .65 else stage(rng)
            if rng.random() < .25:
                t += " | " + rng.choice(TAIL)
            parts.append(t)
        s = rng.choice(["\n", "\n", "; "]).join(parts)
    while "‹cmdlet›" in s:
        s = s.replace("‹cmdlet›", rng.choice(GET + DO), 1)
    while "⟨" in s:
        i, j = s.index("⟨"), s.index("⟩")
        s = s[:i] + rng.choice(s[i + 1:j].split("|")) + s[j + 1:]
    s = fill(s, rng)
    if rng.random() < .08:
        s = s.lower()
    return s


add("tools", "execute_command", "benign", "powershell", "windows:powershell", lambda r: {"command": command(r)})
